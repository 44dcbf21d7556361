// The tuner at work on a service that a test plays: what it orders is in force, what is journalled
// is what happened, and whatever goes wrong leaves no candidate behind.
#include "control/daemon/tuner/live_tuner.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/unit/daemon/fake_segment.h"
#include "tests/unit/daemon/fake_service.h"
#include "tests/unit/daemon/scratch_folder.h"

namespace paceline::daemon {

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr double kGoodGain = 0.01;  // of alpha: what the plant likes
constexpr const char* kPresets = R"(schema = 1
algorithm = "dcqcn"
emulator = "0.1.0"
[[preset]]
name = "good"
command = "none"
gain = 0.5
gain_sd = 0.01
signature = { load = 0, degree = 0, bytes = [1.0, 0.0, 0.0], core_marks = false }
params = { alpha_gain = 0.01 }
)";

const ParamSet& plain_set() {
  static const ParamSet set = [] {
    std::vector<std::string> errors;
    config::CongestionChange request;
    request.algorithm = "dcqcn";
    return resolve(request, {}, 25'000, errors);
  }();
  return set;
}

// The service: outlives daemons.
struct TunedService {
  std::map<std::string, ParamSet> champions{{"h0", plain_set()}, {"h1", plain_set()}};
  std::map<std::string, ParamSet> in_force = champions;
  Json trials = Json::array();
  FakeSegment segment{{"h0", "h1"}};
  std::uint32_t trials_begun = 0;
  bool refuse_trials = false;

  void put(const std::map<std::string, ParamSet>& sets, std::uint32_t arm, std::uint32_t epoch) {
    in_force = sets;
    ++segment.body.generation;
    segment.body.arm = arm;
    segment.body.epoch = epoch;
    write();
  }
  void write() {
    for (std::size_t nic = 0; nic < 2; ++nic) segment.write(nic);
  }
  // 10 ms of traffic under what is in force.
  void tick() {
    const bool good = in_force["h0"].values.at("alpha_gain") == kGoodGain;
    telemetry::MessageFigures& figures = segment.messages[0];
    figures.begun += 100;
    figures.completed += 100;
    figures.begun_bytes += 100 * 4096;
    figures.completed_bytes += 100 * 4096;
    figures.slowdown[good ? 4 : 20] += 100;
    write();
  }
  static Json refused(const char* why) { return {{"ok", false}, {"errors", {why}}}; }
  void serve(FakeService& fake) {
    fake.operations["hello"] = [](const Json&) {
      return Json{
          {"ok", true},
          {"start_unix_ns", 1},
          {"nics",
           {{{"name", "h0"}, {"rate_mbps", 25'000}}, {{"name", "h1"}, {"rate_mbps", 25'000}}}}};
    };
    fake.operations["parameters"] = [this](const Json&) {
      Json nics = Json::array();
      for (const auto& [name, set] : in_force) {
        Json nic = json_of(set);
        nic["name"] = name;
        nic["generation"] = segment.body.generation;
        nic["arm"] = segment.body.arm;
        nic["epoch"] = segment.body.epoch;
        nics.push_back(nic);
      }
      return Json{{"ok", true}, {"nics", nics}};
    };
    fake.operations["configure"] = [this](const Json& request) -> Json {
      if (!trials.empty()) return refused("a trial is running");
      std::vector<std::string> errors;
      Json members = request;
      for (const char* other : {"schema", "id", "op", "dry_run"}) members.erase(other);
      const ParamsRequest wanted = params_request_of(members, errors);
      for (const std::string& nic : wanted.nics) {
        champions[nic] = resolve(wanted.change, champions[nic], 25'000, errors);
      }
      REQUIRE(errors.empty());
      put(champions, 0, 0);
      return Json{{"ok", true}};
    };
    fake.operations["trials"] = [this](const Json&) {
      return Json{{"ok", true}, {"trials", trials}};
    };
    fake.operations["trial"] = [this](const Json& request) -> Json {
      if (refuse_trials) return refused("not such a thing");
      if (!trials.empty()) return refused("another trial is running");
      ++trials_begun;
      trials.push_back({{"name", request.at("name")},
                        {"state", "running"},
                        {"params", request.at("candidate").at("params")}});
      return {{"ok", true}};
    };
    fake.operations["use_arm"] = [this](const Json& request) -> Json {
      auto sets = champions;
      for (auto& [name, set] : sets) {
        for (const auto& [param, value] : trials.at(0).at("params").items()) {
          set.values[param] = value.get<double>();
        }
      }
      put(sets, 1, request.at("epoch").get<std::uint32_t>());
      return {{"ok", true}, {"generation", segment.body.generation}};
    };
    fake.operations["renew"] = [](const Json&) { return Json{{"ok", true}}; };
    fake.operations["end_trial"] = [this](const Json& request) -> Json {
      if (trials.empty() || trials.at(0).at("name") != request.at("name")) {
        return refused("there is no such trial");
      }
      REQUIRE(request.at("keep") == "champion");
      trials.clear();
      put(champions, 0, 0);
      return {{"ok", true}};
    };
  }
};

struct TunerRig {
  TunerRig(const ScratchFolder& in, TunedService& s, tuner::online::Mode mode)
      : folder(in), host(s) {
    std::ofstream(folder.file("dcqcn.toml")) << kPresets;
    REQUIRE(store.open(folder.file("state.db"), 1).empty());
    ControlSettings settings;
    settings.path = folder.file("control.sock");
    settings.least_wait = 1ms;
    settings.answer_limit = 500ms;
    client = std::make_unique<ControlClient>(context, settings);
    parameters = std::make_unique<Parameters>(context, *client, store, hub, clock);
    tuner = std::make_unique<LiveTuner>(context, *client, *parameters, sampler, store, hub, clock);
    LiveTunerSettings live;
    live.options.mode = mode;
    live.options.seed = 7;
    live.options.block_windows = 4;
    live.options.wash_windows = 1;
    live.options.learn_windows = 10;
    live.options.cool_blocks = 2;
    live.options.explore_share = 1;
    live.presets = folder.path();
    live.kill_switch = folder.file("stop");
    live.hold_ms = 1000;
    tuner->begin(live);
    host.serve(service);
    service.listen(settings.path);
    client->up = [this](const Json& hello, std::int32_t) {
      asio::co_spawn(context, attach(hello), asio::detached);
    };
    client->down = [this] {
      sampler.close();
      tuner->lost();
    };
    asio::co_spawn(context, client->run(), asio::detached);
    for (int i = 0; i < 6000 && ups == 0; ++i) context.run_for(1ms);
    REQUIRE(ups == 1);
    settle();
  }
  ~TunerRig() {
    client->stop();
    service.end();
    for (int i = 0; i < 20; ++i) context.run_for(2ms);
  }
  asio::awaitable<void> attach(Json hello) {
    REQUIRE(sampler.open(host.segment.bytes()).empty());
    co_await parameters->settle(std::move(hello));
    co_await tuner->attached();
    ++ups;
  }
  void settle() {
    context.poll();
    for (int i = 0; i < 3000 && (tuner->busy() || parameters->busy()); ++i) context.run_for(1ms);
    REQUIRE_FALSE(tuner->busy());
  }
  void tick() {
    host.tick();
    now += 10'000'000;
    sampler.sample(now);
    tuner->sampled(now);
    settle();
  }
  void ticks(int n) {
    for (int i = 0; i < n; ++i) tick();
  }
  template <class Condition>
  bool until(Condition condition, int most = 600) {
    for (int i = 0; i < most && !condition(); ++i) tick();
    return condition();
  }
  Reply mode(const char* wanted) {
    std::optional<Reply> out;
    asio::co_spawn(context, tuner->set_mode({"alice", true}, wanted, "test"),
                   [&](std::exception_ptr error, Reply reply) {
                     REQUIRE_FALSE(error);
                     out = std::move(reply);
                   });
    for (int i = 0; i < 1000 && !out; ++i) context.run_for(1ms);
    REQUIRE(out);
    settle();
    return *out;
  }
  std::vector<std::string> events() {
    std::vector<std::string> out;
    const Json entries = tuner->journal(0, 1000).body["entries"];
    for (const Json& entry : entries) out.push_back(entry["event"]);
    return out;
  }
  long count(const char* event) {
    const auto all = events();
    return std::count(all.begin(), all.end(), event);
  }
  Json last_change() {
    const Json changes = parameters->history(0, 1000).body["changes"];
    return changes.empty() ? Json() : changes.back();
  }
  bool champion_in_force() const {
    return host.trials.empty() && host.segment.body.arm == 0 && host.in_force == host.champions;
  }

  const ScratchFolder& folder;
  TunedService& host;
  asio::io_context context;
  std::int64_t now = 1'700'000'000'000'000'000;
  Store store;
  EventHub hub;
  Clock clock{[] { return 0; }, [this] { return now; }};
  Sampler sampler{{}};
  FakeService service{context};
  std::unique_ptr<ControlClient> client;
  std::unique_ptr<Parameters> parameters;
  std::unique_ptr<LiveTuner> tuner;
  int ups = 0;
};

using tuner::online::Mode;

}  // namespace

TEST_CASE("advise: says what it would do and why, and asks the service for nothing",
          "[live_tuner]") {
  const ScratchFolder folder;
  TunedService host;
  TunerRig rig(folder, host, Mode::advise);
  rig.ticks(60);
  CHECK(rig.count("learned") == 1);
  CHECK(rig.count("advised") == 1);
  const Json shown = rig.tuner->show().body;
  CHECK(shown["mode"] == "advise");
  CHECK(shown["would"]["name"] == "good");
  CHECK(shown["would"]["changes"][0]["to"] == kGoodGain);
  CHECK(shown["incumbent"]["values"]["alpha_gain"] == plain_set().values.at("alpha_gain"));
  for (const Json& asked : rig.service.asked) {
    const std::string op = asked.at("op");
    CHECK((op == "hello" || op == "parameters" || op == "trials" || op == "plugins"));
  }
  CHECK(host.in_force.at("h0") == plain_set());
}

TEST_CASE("auto: a better set is tried in trials, accepted, and journalled as the tuner's",
          "[live_tuner]") {
  const ScratchFolder folder;
  TunedService host;
  TunerRig rig(folder, host, Mode::automatic);
  REQUIRE(rig.until([&] { return rig.count("accepted") > 0; }));
  CHECK(rig.count("tried") == 1);
  CHECK(host.trials_begun >= 3);  // six pairs, AB BA AB BA AB BA: blocks of B meet
  CHECK(rig.champion_in_force());
  CHECK(host.champions["h0"].values["alpha_gain"] == kGoodGain);
  CHECK(host.champions["h1"].values["alpha_gain"] == kGoodGain);
  CHECK(rig.last_change()["who"] == "tuner");
  CHECK(rig.last_change()["state"] == "applied");
  const Json shown = rig.tuner->show().body;
  CHECK(shown["incumbent"]["name"] == "good");
  CHECK(shown["order"]["in_force"] == true);

  // Off: the champion again.
  CHECK(rig.mode("off").status == 200);
  CHECK(host.in_force == std::map<std::string, ParamSet>{{"h0", plain_set()}, {"h1", plain_set()}});
  CHECK(rig.last_change()["who"] == "tuner");
  const auto begun = host.trials_begun;
  rig.ticks(100);
  CHECK(host.trials_begun == begun);
  CHECK(rig.mode("on").status == 400);
}

TEST_CASE("another daemon goes on where the one before was killed", "[live_tuner]") {
  const ScratchFolder folder;
  TunedService host;
  {
    TunerRig rig(folder, host, Mode::advise);
    REQUIRE(rig.mode("auto").status == 200);
    REQUIRE(rig.until([&] { return rig.count("accepted") > 0; }));
    REQUIRE(rig.until([&] { return host.segment.body.arm == 1; }));  // the next candidate
  }
  CHECK_FALSE(host.trials.empty());
  TunerRig rig(folder, host, Mode::advise);
  CHECK(host.trials.empty());
  CHECK(host.in_force["h0"].values["alpha_gain"] == kGoodGain);
  CHECK(rig.tuner->show().body["mode"] == "auto");  // as was said last
  rig.ticks(5);
  CHECK(rig.tuner->show().body["incumbent"]["name"].get<std::string>().starts_with("good"));
  CHECK(rig.count("accepted") == 1);
  const auto begun = host.trials_begun;
  CHECK(rig.until([&] { return host.trials_begun > begun; }));
}

TEST_CASE("the kill switch puts the champion back, and lets go when the file does",
          "[live_tuner]") {
  const ScratchFolder folder;
  TunedService host;
  TunerRig rig(folder, host, Mode::automatic);
  REQUIRE(rig.until([&] { return rig.count("accepted") > 0; }));
  REQUIRE(rig.until([&] { return host.segment.body.arm == 1; }));
  std::ofstream(folder.file("stop")) << "";
  rig.ticks(3);
  CHECK(rig.champion_in_force());
  CHECK(host.in_force["h0"] == plain_set());
  CHECK(rig.tuner->show().body["freeze"] == "killed");
  const auto begun = host.trials_begun;
  rig.ticks(100);
  CHECK(host.trials_begun == begun);
  std::filesystem::remove(folder.file("stop"));
  CHECK(rig.until([&] { return host.trials_begun > begun; }));
}

TEST_CASE("the guard's trip rejects the candidate and freezes until it is cleared",
          "[live_tuner]") {
  const ScratchFolder folder;
  TunedService host;
  TunerRig rig(folder, host, Mode::automatic);
  REQUIRE(rig.until([&] { return host.segment.body.arm == 1; }));
  host.trials[0]["state"] = "tripped";
  host.segment.body.guard = 3;
  host.put(host.champions, 0, 0);
  rig.ticks(3);
  CHECK(rig.count("rejected") == 1);
  CHECK(rig.champion_in_force());
  CHECK(rig.tuner->show().body["freeze"] == "trouble");
  CHECK(rig.tuner->show().body["trouble"].get<std::string>().find("trip 3") != std::string::npos);
  const auto begun = host.trials_begun;
  rig.ticks(60);
  CHECK(host.trials_begun == begun);
  host.segment.body.guard = 0;
  host.write();
  CHECK(rig.until([&] { return host.trials_begun > begun; }));
}

TEST_CASE("lost telemetry takes the candidate out of force", "[live_tuner]") {
  const ScratchFolder folder;
  TunedService host;
  TunerRig rig(folder, host, Mode::automatic);
  REQUIRE(rig.until([&] { return host.segment.body.arm == 1; }));
  rig.sampler.close();
  rig.ticks(3);
  CHECK(rig.champion_in_force());
  CHECK(rig.tuner->show().body["freeze"] == "telemetry");
  const auto begun = host.trials_begun;
  REQUIRE(rig.sampler.open(host.segment.bytes()).empty());
  CHECK(rig.until([&] { return host.trials_begun > begun; }));
  CHECK(rig.count("resumed") >= 1);
}

TEST_CASE("a service that is gone for a while is met again, and no trial of before is left",
          "[live_tuner]") {
  const ScratchFolder folder;
  TunedService host;
  TunerRig rig(folder, host, Mode::automatic);
  REQUIRE(rig.until([&] { return host.segment.body.arm == 1; }));
  rig.service.end();
  for (int i = 0; i < 1000 && rig.client->connected(); ++i) rig.context.run_for(1ms);
  rig.ticks(20);
  CHECK(rig.tuner->show().body["freeze"] == "telemetry");
  rig.ups = 0;
  rig.service.listen(folder.file("control.sock"));
  for (int i = 0; i < 3000 && rig.ups == 0; ++i) rig.context.run_for(1ms);
  rig.settle();
  CHECK(rig.champion_in_force());
  const auto begun = host.trials_begun;
  CHECK(rig.until([&] { return host.trials_begun > begun; }));
}

TEST_CASE("what somebody else sets is the champion from then on", "[live_tuner]") {
  const ScratchFolder folder;
  TunedService host;
  TunerRig rig(folder, host, Mode::advise);
  rig.ticks(30);
  for (auto& [nic, set] : host.champions) set.values["alpha_gain"] = 0.02;
  host.put(host.champions, 0, 0);
  rig.ticks(30);
  const Json shown = rig.tuner->show().body;
  CHECK(shown["incumbent"]["values"]["alpha_gain"] == 0.02);
  CHECK(rig.count("froze") >= 1);

  // NICs that differ are not tuned as one.
  host.champions["h1"].values["alpha_gain"] = 0.03;
  host.put(host.champions, 0, 0);
  rig.ticks(30);
  CHECK(rig.tuner->show().body["trouble"].get<std::string>().find("h0 and h1") !=
        std::string::npos);
  host.champions["h0"] = host.champions["h1"];
  host.put(host.champions, 0, 0);
  rig.ticks(30);
  CHECK_FALSE(rig.tuner->show().body.contains("trouble"));
  CHECK(rig.tuner->show().body["incumbent"]["values"]["alpha_gain"] == 0.03);
}

TEST_CASE("it stands by while somebody else tries something, and forgets nothing", "[live_tuner]") {
  const ScratchFolder folder;
  TunedService host;
  TunerRig rig(folder, host, Mode::automatic);
  REQUIRE(rig.until([&] { return rig.count("accepted") > 0; }));
  SECTION("a trial in the service") {
    host.trials.push_back({{"name", "theirs"}, {"state", "running"}});
    auto sets = host.champions;
    for (auto& [nic, set] : sets) set.values["alpha_gain"] = 0.5;
    host.put(sets, 1, 9);
    REQUIRE(rig.until([&] { return rig.tuner->show().body["freeze"] == "other experiment"; }, 60));
    const auto begun = host.trials_begun;
    rig.ticks(150);
    CHECK(host.trials_begun == begun);
    CHECK(host.trials.size() == 1);  // left alone
    host.trials.clear();
    host.put(host.champions, 0, 0);
  }
  SECTION("an experiment of this daemon that waits") {
    std::string name = "exp";
    rig.tuner->experiment = [&name] { return name; };
    rig.ticks(3);
    CHECK_FALSE(rig.tuner->holds());
    const auto begun = host.trials_begun;
    rig.ticks(100);
    CHECK(host.trials_begun == begun);
    name.clear();
    rig.ticks(1);
    rig.tuner->experiment = nullptr;
  }
  const auto begun = host.trials_begun;
  CHECK(rig.until([&] { return host.trials_begun > begun; }));
  CHECK(rig.tuner->show().body["incumbent"]["name"].get<std::string>().starts_with("good"));
  CHECK(rig.count("accepted") >= 1);
}

TEST_CASE("a candidate that the service refuses is rejected", "[live_tuner]") {
  const ScratchFolder folder;
  TunedService host;
  TunerRig rig(folder, host, Mode::automatic);
  host.refuse_trials = true;
  REQUIRE(rig.until([&] { return rig.count("rejected") > 0; }));
  CHECK(rig.champion_in_force());
  const Json entries = rig.tuner->journal(0, 1000).body["entries"];
  CHECK(entries.dump().find("not such a thing") != std::string::npos);
}

TEST_CASE("a mode that the options do not allow is refused", "[live_tuner]") {
  const ScratchFolder folder;
  TunedService host;
  TunerRig rig(folder, host, Mode::off);
  LiveTunerSettings live;
  live.problems = {"a breach may be noticed after 900 ms"};
  rig.tuner->begin(live);
  const Reply reply = rig.mode("auto");
  CHECK(reply.status == 409);
  CHECK(rig.tuner->show().body["mode"] == "off");
}

}  // namespace paceline::daemon
