// Source ports as one of the choices of a tuner.
#include <catch2/catch.hpp>

#include "tests/unit/collective/tune_samples.h"

namespace paceline::tools {
namespace {

constexpr const char* kLeafSpine =
    "topology = \"leaf_spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\nrate = \"100Gb/s\"\n";

TuneCell tuned(bool ports, std::uint64_t seed) {
  CollectiveTunePlan plan;
  plan.group = tune_samples::group_on(kLeafSpine, seed);
  plan.operations = {workload::CollectiveOp::all_reduce};
  plan.sizes = {4 << 20};
  plan.iterations = 1;
  plan.limits.evaluations = 8;
  plan.space.ports = ports;
  const std::atomic<bool> stop{false};
  const auto result = run_collective_tune(plan, stop, [](double, const std::string&) {});
  REQUIRE(result.errors == std::vector<std::string>{});
  return result.value.cells.front();
}

TEST_CASE("collective tune: planned source ports are taken where they are faster", "[tune]") {
  std::uint32_t taken = 0;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    const TuneCell hash = tuned(false, seed);
    const TuneCell both = tuned(true, seed);
    CHECK_FALSE(hash.result.best.setting.planned_ports);
    CHECK_FALSE(both.result.standard.setting.planned_ports);
    CHECK(both.result.best.took_us <= both.result.standard.took_us);
    if (!both.result.best.setting.planned_ports) continue;
    ++taken;
    CHECK(both.result.best.took_us < hash.result.standard.took_us);
  }
  CHECK(taken > 0);
}

TEST_CASE("collective tune: ports are planned where the path follows from them", "[tune]") {
  const auto plans = [](const std::string& fabric) {
    return has_ports_to_plan(tune_samples::group_on(fabric).scenario);
  };
  CHECK(plans(kLeafSpine));
  CHECK_FALSE(plans("hosts = 8\n"));  // a star: one path
  CHECK_FALSE(plans(std::string(kLeafSpine) + "load_balance = \"spray\"\n"));
  config::Scenario spread = tune_samples::group_on(kLeafSpine).scenario;
  spread.transport.multipath = "packet";
  CHECK_FALSE(has_ports_to_plan(spread));
}

}  // namespace
}  // namespace paceline::tools
