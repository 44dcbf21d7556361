// One flow alone takes what arithmetic says, and the public simulator takes that less its clock
// error: the yardstick of all further comparisons is straight.
#include <catch2/catch.hpp>

#include "tests/sim/calibration.h"

namespace paceline::calibration {
namespace {

TEST_CASE("a single 10 MB flow takes its serialisation and one round trip", "[calibration]") {
  const config::Scenario s0 = scenario("s0-single", "hpcc-repo");
  const MessagePlan plan = reference_flows("S0_single_10MB.flows.csv");
  REQUIRE(same_flows(plan, scenario_flows(s0)));
  const Incast run = run_incast(s0, plan);

  // 10,000 packets of 1048 B at 83.84 ns; store and forward of the last one; two links there and
  // two back; the ACK of 60 B twice at 4.8 ns.
  constexpr double kIdealUs = 10'000 * 0.08384 + 0.08384 + 4 * 1.0 + 2 * 0.0048;
  CHECK(run.fct_mean_us == Approx(kIdealUs).margin(1e-6));
  // Its 834.09 us, corrected, and the 842.56 us that its notes call ideal, to one packet each.
  CHECK(run.fct_mean_us == Approx(834.09 * kClockCorrection).margin(0.084));
  CHECK(run.fct_mean_us == Approx(842.56).margin(0.084));
  CHECK(run.marked_acks == 0);
}

}  // namespace
}  // namespace paceline::calibration
