// PowerTCP with telemetry, rule by rule. tau is 10 us, a path 125,000 bytes, beta a tenth of it.
#include "cc/window/powertcp.h"

#include "telemetry_driver.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

namespace {
using PowerFlow = TelemetryFlow<PowerTcp>;
}  // namespace

TEST_CASE("powertcp: a new flow fills the unloaded path, at line rate") {
  const PowerFlow flow;
  CHECK(flow.decision.window_bytes == 125'000);
  CHECK(flow.decision.rate == rate_from_gbps(100));
  CHECK(handed_over<PowerTcp>(20).window_bytes == 25'000);
  CHECK(handed_over<PowerTcp>(20).rate == rate_from_gbps(20));
}

TEST_CASE("powertcp: power is (growth + sent) x (queue + path), of the link that has most") {
  PowerFlow flow;
  flow.send(200'000);
  flow.load(0, 0.5);
  flow.load(1, 1);
  flow.pass_us(10);
  flow.ack_told(5'000);
  CHECK(flow.state.power == 1);  // nothing to compare with yet
  flow.queue(1, 125'008);        // grown by a path in tau: current 2, voltage 2
  flow.pass_us(10);
  flow.ack_told(5'000);
  CHECK(flow.state.power == Approx(4).epsilon(0.001));
  flow.pass_us(5);
  flow.ack_told(5'000);  // it stands: current 1, voltage 2; half of tau weighs a half
  CHECK(flow.state.power == Approx((4 + 2) / 2.0).epsilon(0.001));
  flow.queue(1, 62'512);  // drains by half a path in tau: current 1/2, voltage 3/2
  flow.pass_us(10);
  flow.ack_told(5'000);
  CHECK(flow.state.power == Approx(0.75).epsilon(0.001));
  flow.load(1, 0);  // nothing moves there: link 0 has half of its rate and no queue
  flow.pass_us(20);
  flow.ack_told(5'000);
  CHECK(flow.state.power == Approx(0.5).epsilon(0.001));
}

TEST_CASE("powertcp: the window of a round trip ago by power, plus beta, by gamma") {
  PowerFlow flow({{"gamma", 0.5}, {"flows", 25}});  // beta 5,000
  flow.send(100'000);
  flow.load(0, 1);
  flow.queue(0, 125'008);  // stands: power 2
  flow.pass_us(10);
  flow.ack_told(5'000);
  flow.pass_us(10);
  flow.ack_told(5'000);  // of the first round trip's packets
  double window = 0.5 * (125'000 / 2.0 + 5'000) + 0.5 * 125'000;
  CHECK(flow.state.window == Approx(window).epsilon(0.001));
  const double old = flow.state.old_window;
  CHECK(old == Approx(window).epsilon(0.001));  // which is over with its first answer
  for (int i = 0; i < 3; ++i) {
    flow.pass_us(1);
    flow.ack_told(5'000);
    window = 0.5 * (old / 2 + 5'000) + 0.5 * window;
    CHECK(flow.state.window == Approx(window).epsilon(0.001));
    CHECK(flow.state.old_window == old);
  }
}

TEST_CASE("powertcp: at rest the queue is the sum of the betas") {
  // Ten flows, each beta a tenth of the path: the queue a path, each window a tenth of two.
  PowerFlow flow;
  flow.load(0, 1);
  flow.queue(0, 125'008);
  for (int i = 0; i < 100; ++i) {
    flow.send(5'000);
    flow.pass_us(10);
    flow.ack_told(5'000);
  }
  CHECK(flow.state.window == Approx(25'000).epsilon(0.01));
  CHECK(static_cast<double>(flow.decision.rate.bps) ==
        Approx(flow.state.window * 8 / 10e-6).epsilon(1e-6));
}

TEST_CASE("powertcp: an idle path has a floor of power, and the window its bounds") {
  PowerFlow flow;
  flow.state.window = flow.state.old_window = 1'000;
  for (int i = 0; i < 10; ++i) {
    flow.send(5'000);
    flow.pass_us(10);
    flow.ack_told(5'000);
  }
  CHECK(flow.state.power > 0);
  CHECK(flow.state.window == Approx(125'000));
}

TEST_CASE("powertcp: a loss takes its share once per round trip") {
  PowerFlow flow;
  flow.send(100'000);
  flow.lose(5'000);
  flow.lose(5'000);
  CHECK(flow.state.window == Approx(62'500));
  flow.pass_us(10);
  flow.deliver(Signal::timeout);
  CHECK(flow.state.window == Approx(31'250));
}
