// A 16-to-1 incast of 1 MB under DCQCN goes as in the public HPCC simulator.
//
// Bounds: the larger of 10 % and 3 standard deviations of the reference over ten draws of the
// starts. One draw says little (the deepest queue of the reference varies by 7 %), so means over
// ten are compared.
#include <catch2/catch.hpp>

#include "tests/sim/calibration.h"

namespace paceline::calibration {
namespace {

constexpr std::uint32_t kDraws = 10;

Incast mean_over_draws(const std::string& profile) {
  config::Scenario s1 = scenario("s1-incast16", profile);
  std::vector<Incast> runs;
  for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
    s1.seed = draw + 1;  // of the marking
    runs.push_back(run_incast(s1, jittered_incast(draw)));
  }
  return mean(runs);
}

TEST_CASE("the scenario files carry the reference's flows", "[calibration]") {
  CHECK(same_flows(scenario_flows(scenario("s1-incast16", "hpcc-repo")),
                   reference_flows("S1_incast16_1MB.flows.csv")));
  CHECK(same_flows(scenario_flows(scenario("s1-incast16-jittered", "hpcc-repo")),
                   jittered_incast(0)));
  CHECK(same_flows(scenario_flows(scenario("s2-join", "hpcc-repo")),
                   reference_flows("S2_join.flows.csv")));
  CHECK_FALSE(same_flows(jittered_incast(5), jittered_incast(6)));
}

TEST_CASE("incast under DCQCN hpcc-repo: FCT, last finish, queue and marks as the reference's",
          "[calibration]") {
  check_within(mean_over_draws("hpcc-repo"), reference_band("dcqcn"));
}

// One more draw, with all starts equal; two programs break the ties differently. The bounds of the
// means are no narrower than those of a draw: 3 sd of single draws enter them.
TEST_CASE("incast without jitter under DCQCN hpcc-repo lies within the reference's band",
          "[calibration]") {
  const config::Scenario s1 = scenario("s1-incast16", "hpcc-repo");
  check_within(run_incast(s1, reference_flows("S1_incast16_1MB.flows.csv")),
               reference_band("dcqcn"));
}

TEST_CASE("incast under DCQCN hpcc-repo-paper: as the reference's dcqcn_paper", "[calibration]") {
  check_within(mean_over_draws("hpcc-repo-paper"), reference_band("dcqcn_paper"));
}

}  // namespace
}  // namespace paceline::calibration
