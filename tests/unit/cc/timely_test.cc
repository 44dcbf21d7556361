// TIMELY, rule by rule of its two laws.
#include "cc/rate/timely.h"

#include "flow_driver.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

namespace {

using TimelyFlow = FlowDriver<Timely>;

// A segment is acknowledged, 20 us after the one before.
void timely_segment(TimelyFlow& flow, double rtt_us) {
  flow.pass_us(20);
  flow.send(20'000);
  flow.ack(20'000, rtt_us);
}

double timely_gbps(const TimelyFlow& flow) { return flow.state.rate_bps * 1e-9; }

}  // namespace

TEST_CASE("timely: a new flow begins at its share of the line rate, without a window") {
  const TimelyFlow flow;
  CHECK(flow.decision.rate == rate_from_gbps(100));
  CHECK(flow.decision.window_bytes == kUnlimited);
  CHECK(TimelyFlow({{"start_rate", 0.25}}).decision.rate == rate_from_gbps(25));
  CHECK(handed_over<Timely>(10).rate == rate_from_gbps(10));
  CHECK(handed_over<Timely>(400).rate == rate_from_gbps(100));
}

TEST_CASE("timely: below T_low a step up, whatever the gradient") {
  TimelyFlow flow({{"start_rate", 0.5}, {"additive_increase_mbps", 100}});
  timely_segment(flow, 20);
  timely_segment(flow, 49);  // rises steeply, yet is below
  CHECK(timely_gbps(flow) == Approx(50.2));
  CHECK(flow.state.calm == 0);
}

TEST_CASE("timely: above T_high a cut by the excess, whatever the gradient") {
  TimelyFlow flow({{"start_rate", 0.5}});
  timely_segment(flow, 2000);
  CHECK(timely_gbps(flow) == Approx(50 * (1 - 0.8 * (1 - 500.0 / 2000))));
  const double once = timely_gbps(flow);
  timely_segment(flow, 1000);  // falls, and is above
  CHECK(timely_gbps(flow) == Approx(once * (1 - 0.8 * 0.5)));
}

TEST_CASE("timely: in between a positive gradient cuts in proportion") {
  TimelyFlow flow({{"start_rate", 0.5}});
  timely_segment(flow, 100);
  const double before = timely_gbps(flow);
  timely_segment(flow, 104);
  // 0.875 of 4 us, over a minimum round trip of 20 us.
  CHECK(timely_gbps(flow) == Approx(before * (1 - 0.8 * 0.875 * 4 / 20)));
  const double after = timely_gbps(flow);
  timely_segment(flow, 104);  // the filter remembers an eighth
  CHECK(timely_gbps(flow) == Approx(after * (1 - 0.8 * 0.125 * 0.875 * 4 / 20)));
}

TEST_CASE("timely: hyperactive increase after five updates without a positive gradient") {
  TimelyFlow flow({{"start_rate", 0.1}, {"additive_increase_mbps", 100}});
  for (int i = 0; i < 4; ++i) timely_segment(flow, 100);
  CHECK(timely_gbps(flow) == Approx(10.4));
  timely_segment(flow, 100);
  CHECK(timely_gbps(flow) == Approx(10.9));
  timely_segment(flow, 100);
  CHECK(timely_gbps(flow) == Approx(11.4));
  timely_segment(flow, 120);  // a positive gradient ends it
  CHECK(flow.state.calm == 0);
}

TEST_CASE("timely: with hyper_below_low round trips below T_low count, and take the large step") {
  TimelyFlow flow({{"start_rate", 0.1}, {"additive_increase_mbps", 100}, {"hyper_below_low", 1}});
  for (int i = 0; i < 4; ++i) timely_segment(flow, 30);
  CHECK(timely_gbps(flow) == Approx(10.4));
  timely_segment(flow, 49);  // the gradient rises: below T_low it does not matter
  CHECK(timely_gbps(flow) == Approx(10.9));
  timely_segment(flow, 600);
  CHECK(flow.state.calm == 0);
}

TEST_CASE(
    "timely: with round_trip_updates one update per round trip, the first sample remembered") {
  TimelyFlow flow({{"start_rate", 0.1},
                   {"additive_increase_mbps", 100},
                   {"round_trip_updates", 1},
                   {"min_rtt_us", 1000}});
  flow.send(2'000);
  flow.pass_us(1);
  flow.ack(1'000, 600);  // above T_high, but only remembered
  CHECK(timely_gbps(flow) == Approx(10));
  flow.ack(1'000, 30);  // sent before that sample came: the same round trip
  CHECK(timely_gbps(flow) == Approx(10));
  flow.send(2'000);
  flow.ack(1'000, 0);  // the next one is over, but there is no sample
  CHECK(timely_gbps(flow) == Approx(10));
  flow.ack(1'000, 30);  // less than a segment and sooner than min_rtt_us
  CHECK(timely_gbps(flow) == Approx(10.1));
}

// rdma-hw.cc, UpdateRateTimely: `m_incStage < 5` before it counts, so five small steps, then large.
TEST_CASE("timely hpcc-repo: five small steps, then large ones, below T_low as above") {
  TimelyFlow flow({{"start_rate", 0.1}}, "hpcc-repo");
  const auto round_trip = [&](double rtt_us) {
    flow.send(1'000);
    flow.pass_us(8);
    flow.ack(1'000, rtt_us);
  };
  round_trip(100);
  CHECK(timely_gbps(flow) == Approx(10));
  for (int i = 0; i < 5; ++i) round_trip(i % 2 == 0 ? 40 : 30);
  CHECK(timely_gbps(flow) == Approx(10.5));
  round_trip(30);
  CHECK(timely_gbps(flow) == Approx(11.0));
  for (int i = 0; i < 9; ++i) round_trip(30 + i);
  CHECK(timely_gbps(flow) == Approx(15.5));
  for (int i = 0; i < 50; ++i) round_trip(100'000);
  CHECK(flow.decision.rate == rate_from_gbps(1));  // run.py: MIN_RATE 1000Mb/s
}

TEST_CASE("timely: window_round_trips caps what is in flight by the rate") {
  CHECK(TimelyFlow().decision.window_bytes == kUnlimited);
  TimelyFlow flow({{"start_rate", 0.5}, {"window_round_trips", 2}});
  CHECK(flow.decision.window_bytes == 125'001);  // 50 Gb/s for 20 us
  timely_segment(flow, 2000);
  CHECK(flow.decision.window_bytes ==
        static_cast<std::uint64_t>(125'000 * (1 - 0.8 * (1 - 500.0 / 2000))) + 1);
}

TEST_CASE("timely: one update per segment and per minimum round trip at most") {
  TimelyFlow flow({{"start_rate", 0.1}, {"additive_increase_mbps", 100}});
  flow.send(100'000);
  flow.pass_us(20);
  flow.ack(15'999, 30);  // less than a segment
  CHECK(timely_gbps(flow) == Approx(10));
  flow.ack(1, 30);
  CHECK(timely_gbps(flow) == Approx(10.1));
  flow.pass_us(19);
  flow.ack(20'000, 30);  // too soon
  CHECK(timely_gbps(flow) == Approx(10.1));
  flow.pass_us(1);
  flow.ack(20'000, 0);  // no sample
  CHECK(timely_gbps(flow) == Approx(10.1));
  flow.ack(20'000, 30);
  CHECK(timely_gbps(flow) == Approx(10.2));
}

TEST_CASE("timely: the rate keeps its bounds") {
  TimelyFlow flow({{"min_rate_mbps", 2000}});
  for (int i = 0; i < 50; ++i) timely_segment(flow, 100'000);
  CHECK(flow.decision.rate == rate_from_gbps(2));
  TimelyFlow fast;
  for (int i = 0; i < 50; ++i) timely_segment(fast, 10);
  CHECK(fast.decision.rate == rate_from_gbps(100));
}

TEST_CASE("timely patched: the weight goes from 0 to 1 as the gradient goes from -1/4 to 1/4") {
  CHECK(Timely::weight(-1) == 0);
  CHECK(Timely::weight(-0.25) == 0);
  CHECK(Timely::weight(0) == 0.5);
  CHECK(Timely::weight(0.125) == 0.75);
  CHECK(Timely::weight(0.25) == 1);
  CHECK(Timely::weight(3) == 1);
}

TEST_CASE("timely patched: the cut is by the round trip's excess over the reference") {
  TimelyFlow flow({{"start_rate", 0.5}, {"additive_increase_mbps", 100}}, "patched");
  timely_segment(flow, 100);  // gradient 0: half a step up, half of beta times (100 - 50) / 50 down
  CHECK(timely_gbps(flow) == Approx(0.05 + 50 * (1 - 0.008 * 0.5 * 1.0)));
  const double before = timely_gbps(flow);
  timely_segment(flow, 110);  // gradient 0.875 x 10 / 20: the whole weight
  CHECK(timely_gbps(flow) == Approx(before * (1 - 0.008 * 60.0 / 50)));
  // It has a fixed point: the same gradient of 0 raises below the reference's balance and cuts
  // above.
  TimelyFlow low({{"start_rate", 0.001}, {"additive_increase_mbps", 100}}, "patched");
  timely_segment(low, 60);
  CHECK(timely_gbps(low) > 0.1);
}
