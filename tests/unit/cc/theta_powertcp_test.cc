// theta-PowerTCP, rule by rule.
#include "cc/window/theta_powertcp.h"

#include "flow_driver.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

namespace {
using ThetaFlow = FlowDriver<ThetaPowerTcp>;
}  // namespace

TEST_CASE("theta-powertcp: a new flow fills the unloaded path, at line rate") {
  const ThetaFlow flow;
  CHECK(flow.decision.window_bytes == 125'000);
  CHECK(flow.decision.rate == rate_from_gbps(100));
  CHECK(handed_over<ThetaPowerTcp>(20).window_bytes == 25'000);
  CHECK(handed_over<ThetaPowerTcp>(20).rate == rate_from_gbps(20));
}

TEST_CASE("theta-powertcp: power is (gradient + 1) times the round trip over tau") {
  ThetaFlow flow;
  flow.send(100'000);
  flow.pass_us(10);
  flow.ack(5'000, 10);
  CHECK(flow.state.power == 1);  // one sample has no gradient
  flow.pass_us(10);
  flow.ack(5'000, 15);  // grows by 5 us in 10
  CHECK(flow.state.power == Approx(1.5 * 1.5));
  flow.pass_us(5);
  flow.ack(5'000, 15);  // standing at 1.5 tau; half a round trip weighs a half
  CHECK(flow.state.power == Approx((2.25 + 1.5) / 2));
  flow.pass_us(20);
  flow.ack(5'000, 13);  // falls by 2 in 20; older than a round trip: all is forgotten
  CHECK(flow.state.power == Approx(0.9 * 1.3));
  flow.pass_us(10);
  flow.ack(5'000, 1);  // falls faster than time: the floor; and tau is the least sample now
  CHECK(flow.state.power == Approx(0.5));
  CHECK(flow.state.least_rtt_ns == 1'000);
}

TEST_CASE(
    "theta-powertcp: the window moves to window / power + beta, by gamma, once a round trip") {
  ThetaFlow flow({{"gamma", 0.5}, {"flows", 25}});
  flow.send(100'000);
  flow.pass_us(10);
  flow.ack(5'000, 20);                          // the round trip since start is over; no power yet
  CHECK(flow.state.window == Approx(125'000));  // 127,500 is above the largest
  flow.pass_us(10);
  flow.ack(5'000, 20);  // power 2, in the same round trip
  CHECK(flow.state.power == Approx(2));
  CHECK(flow.state.window == Approx(125'000));
  flow.ack(90'000, 0);
  flow.send(5'000);
  flow.ack(5'000, 0);
  CHECK(flow.state.window == Approx(0.5 * (125'000 / 2.0 + 5'000) + 0.5 * 125'000));
}

TEST_CASE("theta-powertcp: at rest the queue is the sum of the betas") {
  // Ten flows, each beta = a tenth of the path: twice the unloaded round trip, each a tenth of 2
  // BDP.
  ThetaFlow flow;
  for (int i = 0; i < 200; ++i) flow.round_trip(20);
  CHECK(flow.state.window == Approx(25'000).epsilon(0.02));
}

TEST_CASE(
    "theta-powertcp: paced over the unloaded round trip; less than a packet by the real one") {
  ThetaFlow flow;
  for (int i = 0; i < 200; ++i) flow.round_trip(20);
  CHECK(static_cast<double>(flow.decision.rate.bps) ==
        Approx(flow.state.window * 8 / 10e-6).epsilon(1e-6));
  flow.state.window = 1'000;
  flow.send(5'000);
  flow.ack(5'000, 0);
  CHECK(flow.decision.window_bytes ==
        Approx(flow.state.window < 5'000 ? 5'000 : flow.state.window));
}

TEST_CASE("theta-powertcp: a loss takes its share once per round trip") {
  ThetaFlow flow;
  flow.send(100'000);
  flow.lose(5'000);
  flow.lose(5'000);
  CHECK(flow.state.window == Approx(62'500));
  flow.pass_us(10);
  flow.deliver(Signal::timeout);
  CHECK(flow.state.window == Approx(31'250));
}
