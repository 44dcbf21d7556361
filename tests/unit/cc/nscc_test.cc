// NSCC, quadrant by quadrant and rule by rule.
#include "cc/window/nscc.h"

#include "flow_driver.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

namespace {

using NsccFlow = FlowDriver<Nscc>;

// One rule at a time: increases take effect at once, nothing is added besides.
std::vector<ParamOverride> bare(std::vector<ParamOverride> more = {}) {
  more.push_back({"constant", 0.0001});
  more.push_back({"fast_scale", 0});
  more.push_back({"quick_adapt", 0});
  more.push_back({"adjust_packets", 0.1});
  return more;
}

NsccFlow half_open(std::vector<ParamOverride> overrides) {
  NsccFlow flow(overrides);
  flow.state.window = 100'000;
  flow.send(100'000);
  flow.pass_us(5);
  return flow;
}

}  // namespace

TEST_CASE("nscc: a new flow begins with the largest window, one and a half paths") {
  CHECK(NsccFlow().decision.window_bytes == 187'500);
  CHECK(NsccFlow().decision.rate == rate_from_gbps(100));
  CHECK(handed_over<Nscc>(20).window_bytes == 25'000);
}

TEST_CASE("nscc: unmarked below the target: increase in proportion to what is missing") {
  // a = 125 kB / 150 kB; alpha = 4 packets x a per round trip of 12 us at no delay.
  NsccFlow flow = half_open(bare());
  flow.ack(5'000, 10 + 5);  // half way to the target of 10 us
  const double per_ns = 4 * 5'000 * (125.0 / 150) / 12'000;
  CHECK(flow.state.window == Approx(100'000 + per_ns * 5'000 * 5'000 / 100'000).epsilon(1e-6));
}

TEST_CASE("nscc: unmarked at or above the target: fair increase") {
  NsccFlow flow = half_open(bare());
  flow.ack(5'000, 10 + 10);
  const double fair = 5 * 5'000 * (125.0 / 150);
  CHECK(flow.state.window == Approx(100'000 + fair * 5'000 / 100'000).epsilon(1e-6));
}

TEST_CASE("nscc: marked below the target: the window stays") {
  NsccFlow flow = half_open(bare());
  flow.state.average_ns = 50'000;
  flow.ack(5'000, 10 + 9.9, 5'000);
  CHECK(flow.state.window == 100'000);
}

TEST_CASE("nscc: marked above the target: decrease by the average's excess, once a round trip") {
  NsccFlow flow = half_open(bare({{"delay_gain", 1}}));
  flow.pass_us(6);  // a round trip since the start
  flow.ack(5'000, 10 + 16, 5'000);
  CHECK(flow.state.window == Approx(100'000 * (1 - 0.8 * 6 / 16)).epsilon(1e-4));
  const double once = flow.state.window;
  flow.pass_us(10);
  flow.ack(5'000, 10 + 16, 5'000);
  CHECK(flow.state.window == Approx(once).epsilon(1e-3));
  flow.pass_us(0.001);
  flow.ack(5'000, 10 + 1000, 5'000);
  CHECK(flow.state.window == Approx(once * 0.5).epsilon(1e-3));  // no more than max_decrease
  // The average decides: one slow packet among fast ones does not cut.
  NsccFlow calm = half_open(bare());
  calm.pass_us(6);
  calm.ack(5'000, 10 + 100, 5'000);
  CHECK(calm.state.window == Approx(100'000).epsilon(1e-4));
}

TEST_CASE("nscc: the average of the delay falls when packets above the target are unmarked") {
  NsccFlow flow = half_open(bare({{"delay_gain", 0.1}}));
  flow.state.average_ns = 20'000;
  flow.ack(5'000, 10 + 30);
  CHECK(flow.state.average_ns == Approx(20'000 + 0.1 * (2'500 - 20'000)));
  flow.ack(10'000, 10 + 30, 10'000);  // two packets weigh twice
  CHECK(flow.state.average_ns == Approx(18'250 + 0.2 * (30'000 - 18'250)));
}

TEST_CASE("nscc: increases are gathered for eight packets or a round trip, then the constant") {
  NsccFlow flow({{"fast_scale", 0}, {"quick_adapt", 0}, {"fair", 0}});
  flow.state.window = 100'000;
  flow.send(100'000);
  for (int i = 0; i < 8; ++i) flow.ack(5'000, 15);
  CHECK(flow.state.window == 100'000);
  flow.ack(5'000, 15);
  const double after = flow.state.window;
  CHECK(after > 100'000);
  flow.pass_us(10);
  flow.ack(5'000, 20);  // at the target, fair is 0: only the constant is left
  CHECK(flow.state.window == Approx(after + 0.15 * 5'000 * 125.0 / 150));
}

TEST_CASE("nscc: a whole window without queueing delay opens it quickly") {
  NsccFlow flow({{"quick_adapt", 0}, {"proportional", 0}, {"constant", 0.0001}});
  flow.state.window = 50'000;
  flow.send(100'000);
  for (int i = 0; i < 10; ++i) flow.ack(5'000, 10.5);
  CHECK(flow.state.window == Approx(50'000).epsilon(1e-4));
  flow.ack(5'000, 10.5);
  CHECK(flow.state.window == Approx(50'000 + 5'000 * 0.25 * 125.0 / 150).epsilon(1e-4));
  flow.ack(5'000, 11.5);  // a queue ends it
  CHECK_FALSE(flow.state.hurrying);
}

TEST_CASE("nscc: after an extreme delay the window becomes what was delivered") {
  NsccFlow flow({{"constant", 0.0001}});
  flow.send(187'500);
  flow.pass_us(10);
  flow.ack(5'000, 15);  // the first period begins
  flow.pass_us(10);
  flow.ack(7'000, 10 + 60, 7'000);
  flow.pass_us(11);
  flow.ack(5'000, 10 + 60, 5'000);  // over: 12,000 delivered, less than an eighth of 187,500
  CHECK(flow.state.window == Approx(12'000));
  // What was in flight then speaks of the past.
  flow.pass_us(30);
  flow.ack(5'000, 10 + 60, 5'000);
  CHECK(flow.state.window == Approx(12'000));
  // Enough delivered: no quick adapt.
  NsccFlow fine({{"constant", 0.0001}});
  fine.send(187'500);
  fine.pass_us(10);
  fine.ack(5'000, 15);
  fine.pass_us(10);
  fine.ack(30'000, 15);
  fine.pass_us(11);
  fine.ack(5'000, 10 + 60, 5'000);
  CHECK(fine.state.window > 100'000);
}

TEST_CASE("nscc: a loss takes what was lost, and asks for quick adapt") {
  NsccFlow flow;
  flow.send(187'500);
  flow.pass_us(10);
  flow.ack(5'000, 15);
  const double before = flow.state.window;
  flow.lose(10'000);
  CHECK(flow.state.window == Approx(before - 10'000));
  flow.pass_us(21);
  flow.ack(5'000, 15);
  CHECK(flow.state.window == Approx(5'000));  // delivered since the first period began
}

// As UE does with a NACK: by half of what is in flight the window is what was delivered.
TEST_CASE("nscc: trimmed packets are losses known at once, and asked for quick adapt") {
  NsccFlow flow;
  flow.send(187'500);
  flow.pass_us(10);
  flow.ack(5'000, 15);
  flow.pass_us(21);
  Event e;
  e.now = flow.now;
  e.signal = Signal::nack;
  e.lost_bytes = e.trimmed_bytes = 100'000;
  e.inflight_bytes = 82'500;
  Nscc::on_event(flow.state, flow.params, e, flow.decision);
  CHECK(flow.state.window == Approx(5'000));
  // The marks of what was in flight then are of the past: the window is not cut twice.
  e.lost_bytes = e.trimmed_bytes = 4'000;
  Nscc::on_event(flow.state, flow.params, e, flow.decision);
  CHECK(flow.state.window == Approx(5'000));
}

TEST_CASE("nscc: without marks in ACKs a CNP marks the next acknowledgement") {
  NsccFlow flow = half_open(bare({{"delay_gain", 1}}));
  flow.pass_us(6);
  flow.deliver(Signal::cnp);
  flow.ack(5'000, 10 + 16);
  CHECK(flow.state.window == Approx(100'000 * (1 - 0.8 * 6 / 16)).epsilon(1e-4));
  flow.ack(5'000, 15, 5'000);  // marks in ACKs from now on
  flow.deliver(Signal::cnp);
  CHECK_FALSE(flow.state.notified);
}
