// Experiments over a service and a segment that a test writes.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "control/daemon/experiments/experiments.h"
#include "tests/unit/daemon/fake_segment.h"
#include "tests/unit/daemon/fake_service.h"
#include "tests/unit/daemon/scratch_folder.h"

namespace paceline::daemon {

// 12 pairs of blocks of 10 ms, of the rig's own time.
inline std::string quick_plan(const std::string& more = {}) {
  return R"(schema = 1
name = "quick"
design = "switchback"
seed = 7
[[arm]]
name = "dcqcn"
algorithm = "dcqcn"
[[arm]]
name = "cadence"
algorithm = "cadence"
[timing]
fct_p999 = "200us"
[blocks]
length = "10ms"
hold = "2s"
[pairs]
max = 12
[analysis]
closed_loop = true
[calibration]
none_because = "a test"
)" + more;
}

// The same with a cluster of receivers for each of two NICs.
inline std::string ports_plan(const std::string& left, const std::string& right) {
  std::string plan = quick_plan();
  plan.replace(plan.find("switchback"), 10, "receiver_ports");
  const std::string clusters = "[[cluster]]\nname = \"left\"\nnics = [\"" + left +
                               "\"]\n[[cluster]]\nname = \"right\"\nnics = [\"" + right + "\"]\n";
  return plan.insert(plan.find("[timing]"), clusters);
}

// Two NICs with traffic; `gain` is what the candidate does to log2 slowdown.
class ExperimentRig {
 public:
  explicit ExperimentRig(const ScratchFolder& in) : folder(in) {
    REQUIRE(store.open(folder.file("state.db"), 1).empty());
    std::vector<std::string> errors;
    config::CongestionChange usual;
    usual.algorithm = "dcqcn";
    champion = resolve(usual, {}, 25'000, errors);
    REQUIRE(errors.empty());
    prepare_service();
    service.listen(folder.file("control.sock"));
    open_daemon();
  }
  ~ExperimentRig() {
    close_daemon();
    service.end();
    context.run_for(std::chrono::milliseconds(5));
  }

  // A new daemon with the same store and folder.
  void open_daemon() {
    ControlSettings control;
    control.path = folder.file("control.sock");
    control.least_wait = std::chrono::milliseconds(1);
    control.answer_limit = std::chrono::seconds(5);
    client = std::make_unique<ControlClient>(context, control);
    sampler = std::make_unique<Sampler>(SamplerSettings{});
    REQUIRE(sampler->open(segment->bytes()).empty());
    parameters = std::make_unique<Parameters>(context, *client, store, hub, clock);
    ExperimentSettings settings;
    settings.folder = folder.file("experiments");
    settings.look = std::chrono::milliseconds(1);
    settings.blink = std::chrono::milliseconds(3);
    settings.well_for = std::chrono::milliseconds(20);
    experiments = std::make_unique<Experiments>(
        Experiments::Parts{context, *client, *sampler, store, hub, clock, *parameters}, settings);
    REQUIRE(experiments->open().empty());
    client->up = [this](const Json& hello, std::int32_t) {
      boost::asio::co_spawn(context, attach(hello), boost::asio::detached);
    };
    boost::asio::co_spawn(context, client->run(), boost::asio::detached);
    const int before = attached;
    REQUIRE(run_until([&] { return attached > before; }));
  }
  // As kill -9 leaves it: nothing is ended, nobody is told.
  void close_daemon() {
    experiments->leave();
    client->stop();
    context.run_for(std::chrono::milliseconds(20));
  }

  // Time advances by a millisecond per round, with a look at the segment in each.
  template <class Condition>
  bool run_until(Condition condition) {
    for (int i = 0; i < 20'000 && !condition(); ++i) {
      now_ns += 1'000'000;
      work();
      if (sampler && telemetry) {
        for (std::size_t nic = 0; nic < 2; ++nic) segment->write(nic);
        sampler->sample(now_ns);
      }
      if (experiments) experiments->sampled();
      context.run_for(std::chrono::microseconds(300));
    }
    return condition();
  }
  Reply run(boost::asio::awaitable<Reply> asked) {
    std::optional<Reply> out;
    boost::asio::co_spawn(context, std::move(asked), [&](std::exception_ptr error, Reply reply) {
      REQUIRE_FALSE(error);
      out = std::move(reply);
    });
    REQUIRE(run_until([&] { return out.has_value(); }));
    return *out;
  }
  Reply start(const std::string& plan, Json more = Json::object()) {
    more["plan"] = plan;
    more["why"] = "to see";
    return run(experiments->start({"alice", true}, std::move(more)));
  }
  Json entry(const char* id = "1") {
    return experiments->show(id).body.value("experiment", Json());
  }
  bool ends(const char* id = "1") {
    return run_until([&] { return entry(id).value("state", "") != "running"; });
  }
  std::size_t asked(const char* op) const {
    std::size_t n = 0;
    for (const Json& request : service.asked) n += request.at("op") == op ? 1 : 0;
    return n;
  }

  const ScratchFolder& folder;
  boost::asio::io_context context;
  Store store;
  EventHub hub;
  std::int64_t now_ns = 1'000'000'000;
  Clock clock{[this] { return now_ns; }, [this] { return 1'700'000'000'000'000'000 + now_ns; }};
  FakeService service{context};
  std::unique_ptr<FakeSegment> segment =
      std::make_unique<FakeSegment>(std::vector<std::string>{"h0", "h1"});
  std::unique_ptr<ControlClient> client;
  std::unique_ptr<Sampler> sampler;
  std::unique_ptr<Parameters> parameters;
  std::unique_ptr<Experiments> experiments;
  ParamSet champion;
  double gain = -1;      // of the candidate, to log2 of the slowdown of each message
  double spillover = 0;  // the same to the champion's, beside a candidate
  bool telemetry = true;
  std::string trial;        // the one that runs
  std::string trial_state;  // "running", "tripped", "abandoned"
  std::string refuse_trial;
  std::uint32_t arm = 0;
  std::set<std::uint32_t> arms_seen;
  std::set<std::vector<std::uint32_t>> halves_seen;  // by cluster
  int attached = 0;

 private:
  boost::asio::awaitable<void> attach(Json hello) {
    co_await parameters->settle(std::move(hello));
    co_await experiments->attached();
    ++attached;
  }

  // A hundred small messages in a millisecond.
  void work() {
    segment->body.at_ns = static_cast<std::uint64_t>(now_ns);
    send(segment->messages[0], arm);
    for (telemetry::ClusterSample& cluster : segment->clusters) {
      send(cluster.messages[0], cluster.figures.arm);
      cluster.figures.tx_data_packets += 100;
    }
  }
  void send(telemetry::MessageFigures& small, std::uint32_t in_arm) const {
    const double mixed = mixed_arms() ? spillover : 0;
    const double log2 =
        2 + (in_arm == 1 ? gain : mixed) + static_cast<double>((now_ns / 1'000'000) % 7) * 0.02;
    small.begun += 100;
    small.completed += 100;
    small.begun_bytes += 400'000;
    small.completed_bytes += 400'000;
    small.log2_slowdown += static_cast<std::uint64_t>(100 * log2 * telemetry::kLogUnit);
    small.slowdown[static_cast<std::size_t>(log2 * 8)] += 100;
  }

  bool mixed_arms() const {
    return segment->clusters.size() == 2 &&
           segment->clusters[0].figures.arm != segment->clusters[1].figures.arm;
  }

  Json parameters_answer() const {
    Json nics = Json::array();
    for (const char* name : {"h0", "h1"}) {
      Json nic = json_of(champion);
      nic["name"] = name;
      nic["generation"] = 1;
      nic["arm"] = arm;
      nic["fallback"] = {{"algorithm", "dcqcn"}, {"profile", "paper"}};
      nics.push_back(std::move(nic));
    }
    return {{"ok", true}, {"nics", std::move(nics)}};
  }

  Json refused(const std::string& why) const { return {{"ok", false}, {"errors", {why}}}; }

  Json change(const Json& request) {
    if (trial != request.at("name")) return refused("there is no trial of that name");
    if (trial_state != "running") return refused("the trial is over");
    if (request.at("op") == "use_arm") {
      if (request.contains("arms")) {
        const auto arms = request.at("arms").get<std::vector<std::uint32_t>>();
        segment->clusters.resize(arms.size());
        for (std::size_t c = 0; c < arms.size(); ++c) segment->clusters[c].figures.arm = arms[c];
        halves_seen.insert(arms);
      } else {
        arm = request.at("arm").get<std::uint32_t>();
        arms_seen.insert(arm);
        segment->body.arm = arm;
      }
      segment->body.epoch = request.at("epoch").get<std::uint32_t>();
    }
    return {{"ok", true}, {"generation", 2}, {"remaining_ms", 1000}};
  }

  void prepare_service() {
    service.operations["hello"] = [](const Json&) {
      return Json{
          {"ok", true},
          {"start_unix_ns", 5},
          {"nics",
           {{{"name", "h0"}, {"rate_mbps", 25'000}}, {{"name", "h1"}, {"rate_mbps", 25'000}}}}};
    };
    service.operations["parameters"] = [this](const Json&) { return parameters_answer(); };
    service.operations["trial"] = [this](const Json& request) -> Json {
      if (!refuse_trial.empty()) return refused(refuse_trial);
      if (!trial.empty()) return refused("a trial is running");
      trial = request.at("name").get<std::string>();
      trial_state = "running";
      return {{"ok", true}, {"arms", Json::array()}};
    };
    service.operations["use_arm"] = [this](const Json& request) { return change(request); };
    service.operations["renew"] = [this](const Json& request) { return change(request); };
    service.operations["end_trial"] = [this](const Json& request) -> Json {
      if (trial != request.at("name")) return refused("there is no trial of that name");
      trial.clear();
      put_champion_back();
      return {{"ok", true}};
    };
    service.operations["trials"] = [this](const Json&) -> Json {
      Json trials = Json::array();
      if (!trial.empty()) {
        trials.push_back(
            {{"name", trial}, {"state", trial_state}, {"why", "guard of h0: stalled"}});
      }
      return {{"ok", true}, {"trials", std::move(trials)}};
    };
    service.operations["configure"] = [this](const Json& request) -> Json {
      std::vector<std::string> errors;
      config::CongestionChange wanted;
      wanted.algorithm = request.at("algorithm").get<std::string>();
      wanted.profile = request.at("profile").get<std::string>();
      champion = resolve(wanted, champion, 25'000, errors);
      REQUIRE(errors.empty());
      return {{"ok", true}};
    };
  }

 public:
  void put_champion_back() {
    arm = 0;
    segment->body.arm = 0;
    segment->body.epoch = 0;
    segment->clusters.clear();
  }
  void trip() {
    trial_state = "tripped";
    put_champion_back();
    segment->body.guard = 1;
  }
};

}  // namespace paceline::daemon
