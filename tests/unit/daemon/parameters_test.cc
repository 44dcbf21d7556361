// Parameters: what is asked for is what the tables allow, changes are journalled and reverted, and
// a service that was restarted gets back what was in force.
#include "control/daemon/parameters/parameters.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include "tests/unit/daemon/fake_service.h"
#include "tests/unit/daemon/scratch_folder.h"

namespace paceline::daemon {

namespace {

namespace net = boost::asio;
using namespace std::chrono_literals;

const ParamSet& usual_set() {
  static const ParamSet set = [] {
    std::vector<std::string> errors;
    config::CongestionChange request;
    request.algorithm = "dcqcn";
    return resolve(request, {}, 25'000, errors);
  }();
  return set;
}

// A daemon's parameters over a service that keeps sets by NIC.
struct ParametersRig {
  explicit ParametersRig(const ScratchFolder& in) : folder(in) {
    REQUIRE(store.open(folder.file("state.db"), 1).empty());
    ControlSettings settings;
    settings.path = folder.file("control.sock");
    settings.least_wait = 1ms;
    settings.answer_limit = 200ms;
    client = std::make_unique<ControlClient>(context, settings);
    parameters = std::make_unique<Parameters>(context, *client, store, hub, clock);
    for (const char* nic : {"h0", "h1"}) sets[nic] = usual_set();
    service.operations["hello"] = [this](const Json&) {
      return Json{
          {"ok", true},
          {"start_unix_ns", start},
          {"nics",
           {{{"name", "h0"}, {"rate_mbps", 25'000}}, {{"name", "h1"}, {"rate_mbps", 25'000}}}}};
    };
    service.operations["parameters"] = [this](const Json&) {
      Json nics = Json::array();
      for (const auto& [name, set] : sets) {
        Json nic = json_of(set);
        nic["name"] = name;
        nic["generation"] = generation;
        nic["arm"] = arm;
        nics.push_back(nic);
      }
      return Json{{"ok", true}, {"nics", nics}};
    };
    service.operations["configure"] = [this](const Json& request) -> Json {
      if (refuse_after == 0) return {{"ok", false}, {"errors", {"not now"}}};
      std::vector<std::string> errors;
      const ParamsRequest wanted = params_request_of(Json{{"nics", request.at("nics")},
                                                          {"algorithm", request.at("algorithm")},
                                                          {"profile", request.at("profile")},
                                                          {"params", request.at("params")}},
                                                     errors);
      REQUIRE(errors.empty());
      if (request.value("dry_run", false)) return {{"ok", true}};
      if (deaf) return Json();
      if (refuse_after > 0) --refuse_after;
      for (const std::string& nic : wanted.nics) {
        sets[nic] = resolve(wanted.change, sets[nic], 25'000, errors);
      }
      REQUIRE(errors.empty());
      ++generation;
      return mute ? Json() : Json{{"ok", true}};
    };
    service.listen(settings.path);
    client->up = [this](const Json& hello, std::int32_t) {
      net::co_spawn(context, parameters->settle(hello), net::detached);
      ++ups;
    };
    net::co_spawn(context, client->run(), net::detached);
    settled();
  }
  ~ParametersRig() {
    client->stop();
    service.end();
    context.run_for(50ms);
  }
  template <class Condition>
  bool run_until(Condition condition) {
    for (int i = 0; i < 6000 && !condition(); ++i) context.run_for(5ms);
    return condition();
  }
  void settled() {
    REQUIRE(run_until([&] { return ups > 0 && client->connected(); }));
    REQUIRE(run_until([&] { return !parameters->busy(); }));
  }
  Reply run(net::awaitable<Reply> work) {
    std::optional<Reply> out;
    net::co_spawn(context, std::move(work), [&](std::exception_ptr error, Reply reply) {
      REQUIRE_FALSE(error);
      out = std::move(reply);
    });
    REQUIRE(run_until([&] { return out.has_value(); }));
    return *out;
  }
  Reply set(Json body) {
    return run(parameters->change({"alice", true}, std::move(body), ChangeAction::set));
  }
  Json last() { return parameters->history(0, 1000).body["changes"].back(); }

  const ScratchFolder& folder;
  net::io_context context;
  Store store;
  EventHub hub;
  Clock clock{[] { return 0; }, [] { return 1'700'000'000'000'000'000; }};
  FakeService service{context};
  std::unique_ptr<ControlClient> client;
  std::unique_ptr<Parameters> parameters;
  std::map<std::string, ParamSet> sets;
  std::uint64_t start = 1;
  std::uint64_t generation = 1;
  std::uint32_t arm = 0;
  int refuse_after = -1;
  bool mute = false;  // does what it is asked, and does not say so
  bool deaf = false;  // does neither
  int ups = 0;
};

}  // namespace

TEST_CASE("a change is put in force, journalled and told", "[parameters]") {
  const ScratchFolder folder;
  ParametersRig rig(folder);
  Json told;
  rig.hub.listen([&](std::string_view topic, const Json& data) {
    if (topic == "parameters") told = data;
  });
  const Reply reply =
      rig.set({{"nics", {"h1"}}, {"params", {{"alpha_gain", 0.01}}}, {"why", "to see"}});
  REQUIRE(reply.status == 200);
  CHECK(rig.sets["h1"].values["alpha_gain"] == 0.01);
  CHECK(rig.sets["h0"] == usual_set());
  const Json change = rig.last();
  CHECK(change["who"] == "alice");
  CHECK(change["why"] == "to see");
  CHECK(change["state"] == "applied");
  CHECK(change["nics"]["h1"]["generation"] == 2);
  CHECK(change["nics"]["h1"]["from"]["values"]["alpha_gain"] ==
        usual_set().values.at("alpha_gain"));
  CHECK(change["nics"]["h1"]["to"]["values"]["alpha_gain"] == 0.01);
  CHECK(change["nics"].size() == 1);
  CHECK(told["number"] == change["number"]);
  CHECK(rig.run(rig.parameters->show("h1")).body["nics"][0]["values"]["alpha_gain"] == 0.01);
  CHECK(rig.run(rig.parameters->show("h7")).status == 404);
}

TEST_CASE("every mistake is told before anything is sent", "[parameters]") {
  const ScratchFolder folder;
  ParametersRig rig(folder);
  const auto errors_of = [&](Json body) {
    const Reply reply = rig.set(std::move(body));
    CHECK(reply.status == 400);
    return reply.body["errors"].dump();
  };
  CHECK(errors_of({{"why", "x"}}).find("nothing to change") != std::string::npos);
  CHECK(errors_of({{"nics", {"h9"}}, {"profile", "default"}}).find("h9") != std::string::npos);
  CHECK(errors_of({{"nics", {"h0", "h0"}}, {"profile", "default"}}).find("twice") !=
        std::string::npos);
  CHECK(errors_of({{"algorithm", "dcqnc"}}).find("did you mean \\\"dcqcn\\\"") !=
        std::string::npos);
  const std::string both = errors_of({{"params", {{"alpha_gain", 7}, {"no_such", 1}}}});
  CHECK(both.find("no_such") != std::string::npos);
  CHECK(both.find("7") != std::string::npos);
  CHECK(errors_of({{"params", {{"alpha_gain", "much"}}}}).find("allowed: number") !=
        std::string::npos);
  for (const Json& asked : rig.service.asked) CHECK(asked.at("op") != "configure");
  CHECK(rig.parameters->history(0, 10).body["changes"].empty());
}

TEST_CASE("a dry run changes nothing and is not journalled", "[parameters]") {
  const ScratchFolder folder;
  ParametersRig rig(folder);
  const Reply reply = rig.set({{"algorithm", "swift"}, {"why", "x"}, {"dry_run", true}});
  REQUIRE(reply.status == 200);
  CHECK(reply.body["change"]["nics"]["h0"]["to"]["algorithm"] == "swift");
  CHECK(rig.sets["h0"] == usual_set());
  CHECK(rig.parameters->history(0, 10).body["changes"].empty());
}

TEST_CASE("what the service refuses is journalled as refused", "[parameters]") {
  const ScratchFolder folder;
  ParametersRig rig(folder);
  rig.refuse_after = 0;
  const Reply reply = rig.set({{"params", {{"alpha_gain", 0.02}}}, {"why", "x"}});
  CHECK(reply.status == 409);
  CHECK(reply.body["errors"][0] == "not now");
  CHECK(rig.last()["state"] == "refused");
}

TEST_CASE("the last change is reverted, or all since one", "[parameters]") {
  const ScratchFolder folder;
  ParametersRig rig(folder);
  REQUIRE(rig.set({{"params", {{"alpha_gain", 0.01}}}, {"why", "1"}}).status == 200);
  const auto first = rig.last()["number"].get<std::int64_t>();
  REQUIRE(rig.set({{"nics", {"h0"}}, {"algorithm", "swift"}, {"why", "2"}}).status == 200);
  REQUIRE(rig.set({{"nics", {"h1"}}, {"params", {{"alpha_gain", 0.03}}}, {"why", "3"}}).status ==
          200);
  const auto revert = [&](std::optional<std::int64_t> to) {
    return rig.run(rig.parameters->revert({"bob", true}, to, "back", false)).status;
  };
  CHECK(revert(std::nullopt) == 200);
  CHECK(rig.sets["h1"].values["alpha_gain"] == 0.01);
  CHECK(rig.sets["h0"].algorithm == "swift");
  CHECK(revert(first) == 200);
  CHECK(rig.sets["h0"].algorithm == "dcqcn");
  CHECK(rig.sets["h0"].values["alpha_gain"] == 0.01);
  CHECK(revert(0) == 200);
  CHECK(rig.sets["h0"] == usual_set());
  CHECK(rig.sets["h1"] == usual_set());
  CHECK(rig.last()["action"] == "revert");
  CHECK(rig.last()["who"] == "bob");
  CHECK(revert(9999) == 409);
}

TEST_CASE("one revert after the other steps back through the journal", "[parameters]") {
  const ScratchFolder folder;
  ParametersRig rig(folder);
  std::vector<std::int64_t> numbers;
  for (const double gain : {0.01, 0.02, 0.03}) {
    REQUIRE(rig.set({{"params", {{"alpha_gain", gain}}}, {"why", "try"}}).status == 200);
    numbers.push_back(rig.last()["number"].get<std::int64_t>());
  }
  const auto revert = [&](std::optional<std::int64_t> to = std::nullopt) {
    return rig.run(rig.parameters->revert({"bob", true}, to, "back", false));
  };
  const auto gain = [&] { return rig.sets["h0"].values["alpha_gain"]; };
  Json change = revert().body["change"];
  CHECK(gain() == 0.02);
  CHECK(change["undone"] == numbers[2]);
  CHECK(change["restored"] == numbers[1]);
  change = revert().body["change"];
  CHECK(gain() == 0.01);
  CHECK(change["undone"] == numbers[1]);
  CHECK(change["restored"] == numbers[0]);
  CHECK(rig.last()["restored"] == numbers[0]);

  // A change after it is what is undone next; then it goes on where it stood.
  REQUIRE(rig.set({{"params", {{"alpha_gain", 0.04}}}, {"why", "try"}}).status == 200);
  CHECK(revert().status == 200);
  CHECK(gain() == 0.01);
  change = revert().body["change"];
  CHECK(rig.sets["h0"] == usual_set());
  CHECK(change["undone"] == numbers[0]);
  CHECK(change["restored"] == 0);
  const Reply none = revert();
  CHECK(none.status == 409);
  CHECK(none.body["errors"][0] == "every change is reverted already; see the history");

  // Forward again by the number of a change, and back from there.
  REQUIRE(revert(numbers[1]).status == 200);
  CHECK(gain() == 0.02);
  CHECK(revert().body["change"]["undone"] == numbers[1]);
  CHECK(gain() == 0.01);
}

TEST_CASE("NICs that get different sets get them all, or none", "[parameters]") {
  const ScratchFolder folder;
  ParametersRig rig(folder);
  REQUIRE(rig.set({{"nics", {"h0"}}, {"algorithm", "swift"}, {"why", "1"}}).status == 200);
  REQUIRE(rig.set({{"nics", {"h1"}}, {"params", {{"alpha_gain", 0.03}}}, {"why", "2"}}).status ==
          200);
  const auto before = rig.sets;
  REQUIRE(rig.set({{"algorithm", "cadence"}, {"why", "3"}}).status == 200);
  rig.refuse_after = 1;  // the second group fails although its dry run was good
  const Reply reply = rig.run(rig.parameters->revert({"bob", true}, std::nullopt, "back", false));
  CHECK(reply.status == 409);
  rig.refuse_after = -1;
  REQUIRE(rig.run(rig.parameters->revert({"bob", true}, std::nullopt, "back", false)).status ==
          200);
  CHECK(rig.sets == before);
}

TEST_CASE("a service that was started anew gets back what was in force", "[parameters]") {
  const ScratchFolder folder;
  ParametersRig rig(folder);
  REQUIRE(rig.set({{"nics", {"h1"}}, {"params", {{"alpha_gain", 0.01}}}, {"why", "1"}}).status ==
          200);
  const auto wanted = rig.sets;
  rig.service.end();
  REQUIRE(rig.run_until([&] { return !rig.client->connected(); }));
  for (auto& [nic, set] : rig.sets) set = usual_set();
  rig.start = 2;
  rig.ups = 0;
  rig.service.listen(folder.file("control.sock"));
  rig.settled();
  CHECK(rig.sets == wanted);
  CHECK(rig.last()["action"] == "put back");
  CHECK(rig.last()["nics"].size() == 1);
}

TEST_CASE("another daemon finds what was in force, and what changed while there was none",
          "[parameters]") {
  const ScratchFolder folder;
  std::map<std::string, ParamSet> sets;
  {
    ParametersRig rig(folder);
    REQUIRE(rig.set({{"nics", {"h1"}}, {"params", {{"alpha_gain", 0.01}}}, {"why", "1"}}).status ==
            200);
    sets = rig.sets;
  }
  {
    ParametersRig rig(folder);  // the same service: but this fake has forgotten
    CHECK(rig.last()["action"] == "found");
    CHECK(rig.last()["nics"]["h1"]["to"] == json_of(usual_set()));
    rig.sets["h0"].values["alpha_gain"] = 0.04;  // kept by a trial that a client ended
    rig.arm = 1;
    rig.run([](ParametersRig& r) -> net::awaitable<Reply> {
      co_await r.parameters->adopt();
      co_return Reply{};
    }(rig));
    CHECK(rig.last()["nics"].contains("h1"));  // an arm of a trial is nobody's wish
    rig.arm = 0;
    rig.run([](ParametersRig& r) -> net::awaitable<Reply> {
      co_await r.parameters->adopt();
      co_return Reply{};
    }(rig));
    CHECK(rig.last()["nics"]["h0"]["to"]["values"]["alpha_gain"] == 0.04);
  }
}

TEST_CASE("a change whose answer never came is settled at the next connection", "[parameters]") {
  for (const bool in_force : {true, false}) {
    const ScratchFolder folder;
    ParametersRig rig(folder);
    (in_force ? rig.mute : rig.deaf) = true;
    const Reply reply = rig.set({{"params", {{"alpha_gain", 0.05}}}, {"why", "1"}});
    CHECK(reply.status == 504);
    rig.mute = rig.deaf = false;
    REQUIRE(rig.run_until([&] { return rig.last()["state"] != "unknown"; }));
    CHECK(rig.last()["state"] == (in_force ? "applied" : "not applied"));
  }
}

// The service's part of it is in tests/unit/service; here it is what it says.
TEST_CASE("a plug-in is loaded by the service, and journalled with its file and content",
          "[parameters]") {
  const ScratchFolder folder;
  ParametersRig rig(folder);
  const std::string digest(64, 'd');
  Json table = config::algorithm_json(*cc::find("swift"));
  table["name"] = "mine";
  table["plugin"] = config::origin_json({"/plugins/mine.so", digest});
  rig.service.operations["load_plugin"] = [&](const Json& request) -> Json {
    if (request.at("path") == "/plugins/link.so" || request.at("path") == "/plugins/mine.so") {
      return {{"ok", true}, {"plugin", table}};
    }
    return {{"ok", false}, {"errors", {"not in a folder"}}};
  };
  Json asked;
  std::map<std::string, ParamSet>& sets = rig.sets;
  rig.service.operations["configure"] = [&](const Json& request) -> Json {
    if (request.value("dry_run", false)) return {{"ok", true}};
    asked = request;
    for (const Json& nic : request.at("nics")) {
      ParamSet& set = sets[nic.get<std::string>()];
      set.values = request.at("params").get<std::map<std::string, double>>();
      set.algorithm = request.contains("sha256") ? "mine" : request.at("algorithm");
      set.plugin.reset();
      if (request.contains("sha256")) set.plugin = {"/plugins/mine.so", request.at("sha256")};
    }
    return {{"ok", true}};
  };

  CHECK(rig.set({{"algorithm", "plugin:/elsewhere/mine.so"}, {"why", "1"}}).status == 409);
  CHECK(rig.set({{"algorithm", "mine"}, {"why", "not loaded"}}).status == 400);
  REQUIRE(rig.set({{"algorithm", "plugin:/plugins/link.so"}, {"why", "2"}}).status == 200);
  CHECK(asked.at("algorithm") == "plugin:/plugins/mine.so");
  CHECK(asked.at("sha256") == digest);
  const Json to = rig.last()["nics"]["h0"]["to"];
  CHECK(to["algorithm"] == "mine");
  CHECK(to["plugin"]["path"] == "/plugins/mine.so");
  CHECK(to["plugin"]["sha256"] == digest);
  CHECK(rig.last()["nics"]["h0"]["changes"][0] ==
        "algorithm dcqcn -> mine (plugin:/plugins/mine.so, sha256 dddddddddddddddd)");
  CHECK(rig.parameters->catalogue().find("mine") != nullptr);
  // Its table is known from now on: mistakes are told here.
  CHECK(rig.set({{"params", {{"no_such", 1}}}, {"why", "3"}}).status == 400);

  // Another service, which has not loaded it: it is asked for the same file and content.
  asked = Json();
  rig.service.end();
  REQUIRE(rig.run_until([&] { return !rig.client->connected(); }));
  for (auto& [nic, set] : sets) set = usual_set();
  rig.start = 2;
  rig.ups = 0;
  rig.service.listen(folder.file("control.sock"));
  rig.settled();
  REQUIRE(asked.is_object());
  CHECK(asked.at("sha256") == digest);
  CHECK(sets["h1"].algorithm == "mine");
  REQUIRE(rig.run(rig.parameters->revert({"bob", true}, 0, "back", false)).status == 200);
  CHECK(sets["h1"] == usual_set());
  CHECK_FALSE(rig.last()["nics"]["h1"]["to"].contains("plugin"));
}

TEST_CASE("without a service nothing is promised", "[parameters]") {
  const ScratchFolder folder;
  ParametersRig rig(folder);
  rig.service.end();
  REQUIRE(rig.run_until([&] { return !rig.client->connected(); }));
  CHECK(rig.set({{"params", {{"alpha_gain", 0.05}}}, {"why", "1"}}).status == 503);
  CHECK(rig.run(rig.parameters->show("")).status == 503);
  CHECK(rig.parameters->history(0, 10).body["changes"].empty());
}

TEST_CASE("with a full disk parameters are changed, and the answer says what is missing",
          "[parameters]") {
  const ScratchFolder folder;
  ParametersRig rig(folder);
  rig.store.limit_pages(1);
  const Reply reply =
      rig.set({{"params", {{"alpha_gain", 0.05}}}, {"why", std::string(20'000, 'w')}});
  CHECK(reply.status == 200);
  CHECK(rig.sets["h0"].values["alpha_gain"] == 0.05);
  REQUIRE(reply.body["change"].contains("warnings"));
  CHECK(reply.body["change"]["warnings"][0].get<std::string>().find("not journalled") == 0);
}

}  // namespace paceline::daemon
