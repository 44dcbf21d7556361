// The scenarios that come with the program: every one can be read and built, the small ones run to
// their end with every law of conservation held.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "dataplane/driver/scenario_setup.h"
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

TEST_CASE("reference scenarios: the small ones run", "[reference]") {
  for (const char* name :
       {"incast-16", "permutation", "oversubscribed-core", "ecmp-collision", "ecmp-multipath"}) {
    CAPTURE(name);
    const tools::ScenarioRun run = run_shipped(name);
    CHECK(run.result.status == experiment::RunStatus::ok);
    CHECK(run.result.reason == "");
    CHECK(run.network.total_drops() == 0);
    // Nothing beats the ideal, on one link or through an oversubscribed core.
    const double efficiency = run.result.metrics[experiment::Metric::collective_efficiency];
    CHECK(efficiency > 0.02);  // 0.05 where elephants collide
    CHECK(efficiency < 1);
    for (const tools::FlowRow& flow : run.flows) {
      if (flow.fct < flow.ideal) FAIL("a message was faster than an empty fabric allows");
    }
  }
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
