// The scenarios that come with the program: every one can be read and built, the small ones run to
// their end with every law of conservation held.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "dataplane/driver/scenario/scenario_setup.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

const std::string kFolder = std::string(PACELINE_SOURCE_DIR) + "/configs/scenarios/";

TEST_CASE("reference scenarios: every file is good", "[reference]") {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path().string());
  }
  CHECK(files.size() >= 20);
  for (const std::string& file : files) {
    CAPTURE(file);
    const std::string name = std::filesystem::path(file).stem().string();
    const tools::PreparedScenario p = prepared(shipped(name));
    CHECK(p.scenario.name == name);
    const auto plan = workload::make_plan(p.scenario, p.inputs, p.scenario.seed);
    CHECK(plan.errors == std::vector<std::string>{});
    CHECK_FALSE(plan.value.messages.empty());
    CHECK(plan_world(p.scenario).error == "");
  }
}

tools::ScenarioRun run_shipped(const std::string& name) { return run(shipped(name)); }

std::uint64_t lost(const tools::ScenarioRun& run, fabric::DropReason reason) {
  return run.network.drops[static_cast<std::size_t>(reason)];
}

struct Bounds {
  const char* scenario;
  const char* congestion_control;
  // Bounds on the collective efficiency. The comment gives the results of seeds 1 to 6. The margin
  // leaves room for changes that are not defects; the defects found so far have cost more.
  double least;
  double most;
};

const Bounds kBounds[] = {
    // 0.38 to 0.41. The first cuts take every sender to the floor, and 16 of them climb by 40 Mb/s
    // each 55 us: most of 1 MB has been sent by then (docs/fidelity.md: 40 % for 16 x 1 MB).
    {"incast-16", "dcqcn", 0.33, 0.46},
    // .989: the plan, eta, less a round trip of 1.3 ms; more than eta would be a plan overdrawn.
    {"incast-16", "cadence", 0.97, 0.995},
    // .11-.35. ECMP puts three or more flows on some uplink; nobody can do better than 1/3 then,
    // and two
    // (1/2) on the worst uplink is a draw that hardly happens with 64 flows.
    {"permutation", "dcqcn", 0.08, 0.50},
    {"permutation", "cadence", 0.17, 0.50},  // .21-.35
    // .50-.62: marks in the core, and the climb after them.
    {"oversubscribed-core", "dcqcn", 0.42, 0.70},
    // .70-.83: no port that receives is full, so the path rates govern.
    {"oversubscribed-core", "cadence", 0.62, 0.90},
    // .04-.09: elephants meet for as long as they last.
    {"ecmp-collision", "dcqcn", 0.03, 0.13},
    {"ecmp-collision", "cadence", 0.16, 0.45},  // .20-.34
    {"ecmp-multipath", "dcqcn", 0.82, 0.95},    // .87-.92
    {"ecmp-multipath", "cadence", 0.77, 0.92},  // .81-.86
};

double efficiency_of(const tools::ScenarioRun& run) {
  CHECK(run.result.status == experiment::RunStatus::ok);
  CHECK(run.result.reason == "");
  CHECK(run.network.total_drops() == 0);
  // Nothing beats the ideal, on one link or through an oversubscribed core.
  for (const tools::FlowRow& flow : run.flows) {
    if (flow.fct < flow.ideal) FAIL("a message was faster than an empty fabric allows");
  }
  return run.result.metrics[experiment::Metric::collective_efficiency];
}

// The same scenario under either algorithm.
config::Scenario under(const std::string& name, const std::string& congestion_control,
                       std::vector<std::string> overrides = {}) {
  overrides.push_back("cc.algorithm=" + congestion_control);
  overrides.push_back(congestion_control == "dcqcn" ? "cc.profile=paper" : "cc.profile=default");
  return shipped(name, overrides);
}

TEST_CASE("reference scenarios: the small ones run as well as they did", "[reference]") {
  for (const Bounds& bounds : kBounds) {
    CAPTURE(bounds.scenario, bounds.congestion_control);
    const double efficiency = efficiency_of(run(under(bounds.scenario, bounds.congestion_control)));
    CHECK(efficiency > bounds.least);
    CHECK(efficiency < bounds.most);
  }
}

// Cadence's efficiency as a share of DCQCN's in a uniform all-to-all, where nothing is to be gained
// (no queue ever forms): what its plan and its control cost.
double share_of_dcqcn(const std::string& hosts, const std::string& message_bytes) {
  const std::vector<std::string> sizes = {"fabric.hosts=" + hosts,
                                          "workload.message_bytes=" + message_bytes};
  const double dcqcn = efficiency_of(run(under("all-to-all", "dcqcn", sizes)));
  const tools::ScenarioRun cadence = run(under("all-to-all", "cadence", sizes));
  // Starts are one packet for each of many senders, and the jitter lets several meet.
  CHECK(cadence.result.metrics[experiment::Metric::queue_max_bytes] < 1e6);
  return efficiency_of(cadence) / dcqcn;
}

// Four seeds: .90 to .94. With 64 of the 71 channels at a time and the others in rotation: .31 to
// .35.
TEST_CASE("reference scenarios: a short uniform all-to-all of 72 hosts", "[reference]") {
  CHECK(share_of_dcqcn("72", "30kB") > 0.85);
}

// Three seeds: .97 to .98, eta and the tail. Ports that are idle at the end for want of GRANTs have
// .84 to .93.
TEST_CASE("reference scenarios: a uniform all-to-all of 64 hosts", "[reference][slow]") {
  CHECK(share_of_dcqcn("64", "100kB") > 0.94);
}

// Nothing of the core is known to the receiver that grants: marks are all there is.
TEST_CASE("reference scenarios: a 2:1 core, Cadence against DCQCN", "[reference]") {
  double dcqcn = 0;
  double cadence = 0;
  for (const char* seed : {"seed=1", "seed=2", "seed=3"}) {
    dcqcn += efficiency_of(run(under("oversubscribed-core", "dcqcn", {seed})));
    cadence += efficiency_of(run(under("oversubscribed-core", "cadence", {seed})));
  }
  // Six seeds: DCQCN 0.44 to 0.52 and once 0.65, Cadence 0.71 to 0.83; of these three 1.37.
  // configs/experiments/tuned.toml holds it against a profile searched for this.
  CHECK(cadence > 1.2 * dcqcn);
}

TEST_CASE("reference scenarios: an uplink flaps under a permutation", "[reference]") {
  const tools::ScenarioRun run = run_shipped("link-flap");
  CHECK(run.result.status == experiment::RunStatus::ok);
  CHECK(run.network.link_failures == 1);
  CHECK(lost(run, fabric::DropReason::link_down) > 0);
  CHECK(run.counters.retransmitted_bytes > 0);
}

TEST_CASE("reference scenarios: a third flow joins two", "[reference]") {
  const tools::ScenarioRun run = run_shipped("late-joiner");
  CHECK(run.result.reason == "");
  CHECK(run.flows[2].start == picos_from_micros(1000));
}

}  // namespace
}  // namespace paceline::simtest
