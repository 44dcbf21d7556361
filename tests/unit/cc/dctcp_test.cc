// DCTCP, rule by rule.
#include "cc/window/dctcp.h"

#include "flow_driver.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

namespace {
using DctcpFlow = FlowDriver<Dctcp>;
}  // namespace

TEST_CASE("dctcp: a new flow begins with ten packets, or fills the path") {
  CHECK(DctcpFlow().decision.window_bytes == 50'000);
  CHECK(DctcpFlow().decision.rate == rate_from_gbps(100));
  CHECK(DctcpFlow({}, "line-start").decision.window_bytes == 125'000);
  CHECK(handed_over<Dctcp>(20).window_bytes == 25'000);
  CHECK(handed_over<Dctcp>(100).window_bytes == 50'000);
}

TEST_CASE("dctcp: slow start doubles the window per round trip until the first mark") {
  DctcpFlow flow;
  flow.round_trip(10);
  CHECK(flow.state.window == Approx(100'000));
  flow.round_trip(10);
  CHECK(flow.state.window == Approx(200'000));
  flow.pass_us(10);
  flow.ack(5'000, 10, 5'000);  // alpha is nearly 1: halved
  CHECK(flow.state.window == Approx(200'000 * (1 - flow.state.alpha / 2)));
  CHECK(flow.state.alpha > 0.7);
  CHECK(flow.state.threshold == Approx(flow.state.window));
}

TEST_CASE("dctcp: congestion avoidance adds a packet per round trip") {
  DctcpFlow flow;
  flow.state.threshold = 1;
  for (int i = 0; i < 10; ++i) flow.round_trip(10);
  CHECK(flow.state.window == Approx(100'000).epsilon(0.05));
}

TEST_CASE("dctcp: a window that is not used does not grow") {
  DctcpFlow flow;
  flow.state.threshold = 1;
  flow.state.window = 500'000;
  flow.send(10'000);
  flow.ack(10'000, 10);
  CHECK(flow.state.window == 500'000);
  flow.state.threshold = 1e9;  // in slow start, too
  flow.send(10'000);
  flow.ack(10'000, 10);
  CHECK(flow.state.window == 500'000);
}

TEST_CASE("dctcp: alpha follows the share of marked bytes, once per round trip") {
  DctcpFlow flow({{"gain", 0.25}, {"initial_alpha", 0}});
  flow.state.exact = true;
  flow.send(40'000);
  flow.pass_us(10);
  flow.ack(10'000, 10, 5'000);  // the first acknowledgement ends the round trip that began at start
  CHECK(flow.state.alpha == Approx(0.25 * 0.5));
  flow.ack(10'000, 10, 10'000);
  flow.ack(20'000, 10, 0);  // all that was sent before this round trip
  CHECK(flow.state.alpha == Approx(0.125));
  flow.send(10'000);
  flow.ack(10'000, 10, 0);  // 10,000 of 40,000 in that round trip
  CHECK(flow.state.alpha == Approx(0.75 * 0.125 + 0.25 * 0.25));
}

TEST_CASE("dctcp: marks cut by alpha / 2, once per round trip") {
  DctcpFlow flow({{"initial_alpha", 0.5}, {"gain", 0.0001}});
  flow.state.threshold = 1;
  flow.state.window = 100'000;
  flow.send(100'000);
  flow.ack(5'000, 10, 5'000);
  CHECK(flow.state.window == Approx(75'000).epsilon(0.001));
  flow.ack(5'000, 10, 5'000);
  CHECK(flow.state.window == Approx(75'000).epsilon(0.001));
  flow.ack(90'000, 10, 90'000);
  flow.send(70'000);
  flow.ack(5'000, 10, 5'000);  // sent after the first mark came back
  CHECK(flow.state.window == Approx(75'000 * 0.75).epsilon(0.001));
}

TEST_CASE("dctcp: without marks in ACKs a CNP counts as a round trip marked whole") {
  DctcpFlow flow({{"initial_alpha", 0.5}, {"gain", 0.5}});
  flow.send(50'000);
  flow.deliver(Signal::cnp);
  CHECK(flow.state.window == Approx(37'500));
  flow.deliver(Signal::cnp);
  CHECK(flow.state.window == Approx(37'500));
  flow.ack(5'000, 10);
  CHECK(flow.state.alpha == Approx(0.75));
  // Marks in an ACK silence them.
  flow.ack(5'000, 10, 5'000);
  const double window = flow.state.window;
  flow.round_trip(10);
  flow.state.window = window;
  flow.deliver(Signal::cnp);
  CHECK(flow.state.window == window);
  CHECK_FALSE(flow.state.notified);
}

TEST_CASE("dctcp: a loss halves it once per round trip, a timeout leaves the least") {
  DctcpFlow flow({{"start_window", 40}});
  flow.send(200'000);
  flow.lose(5'000);
  flow.lose(5'000);
  CHECK(flow.state.window == Approx(100'000));
  flow.deliver(Signal::timeout);
  CHECK(flow.state.window == Approx(10'000));
  CHECK(flow.state.threshold == Approx(50'000));
  DctcpFlow fraction({{"start_window", 40}, {"min_window", 0.01}});
  fraction.deliver(Signal::timeout);
  CHECK(fraction.decision.window_bytes == 5'000);
}

TEST_CASE("dctcp: less than a packet per round trip is paced") {
  DctcpFlow flow({{"min_window", 0.01}, {"start_window", 0.5}});
  // 2,500 bytes in 10 us.
  CHECK(flow.decision.rate == rate_from_gbps(2));
  CHECK(flow.decision.window_bytes == 5'000);
}
