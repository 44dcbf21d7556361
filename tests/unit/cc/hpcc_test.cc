// HPCC, rule by rule. T is 10 us, a path 125,000 bytes, W_AI 62.5 (50 Mb/s).
#include "cc/window/hpcc.h"

#include "telemetry_driver.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

namespace {
using HpccFlow = TelemetryFlow<Hpcc>;
}  // namespace

TEST_CASE("hpcc: a new flow fills the unloaded path, at line rate") {
  const HpccFlow flow;
  CHECK(flow.decision.window_bytes == 125'000);
  CHECK(flow.decision.rate == rate_from_gbps(100));
  CHECK(flow.state.reference == flow.state.window);
  CHECK(handed_over<Hpcc>(20).window_bytes == 25'000);
  CHECK(handed_over<Hpcc>(20).rate == rate_from_gbps(20));
}

TEST_CASE("hpcc: U is that of the fullest link, queue and rate, filtered over T") {
  HpccFlow flow;
  flow.send(100'000);
  flow.load(0, 0.5);
  flow.load(1, 1);
  flow.queue(1, 25'008);
  flow.pass_us(10);
  flow.ack_told(5'000);
  CHECK(flow.state.utilisation == 1);  // nothing to compare with yet
  CHECK(flow.decision.window_bytes == 125'000);
  flow.queue(1, 50'000);
  flow.pass_us(5);
  flow.ack_told(5'000);  // the smaller of two queues counts; half a T weighs a half
  CHECK(flow.state.utilisation == Approx((1 + 1.2) / 2).epsilon(0.001));
  flow.pass_us(20);
  flow.ack_told(5'000);  // older than T: all is forgotten
  CHECK(flow.state.utilisation == Approx(1.4).epsilon(0.001));
  flow.load(1, 0.3);
  flow.queue(1, 0);
  flow.pass_us(10);
  flow.ack_told(5'000);
  CHECK(flow.state.utilisation == Approx(0.5).epsilon(0.001));  // link 0 now
}

TEST_CASE("hpcc: above eta the window is that of the round trip's start by U / eta, plus W_AI") {
  HpccFlow flow;
  flow.send(125'000);
  flow.load(0, 1);
  flow.queue(0, 125'008);  // U = 2
  flow.pass_us(10);
  flow.ack_told(5'000);
  flow.send(5'000);  // of the round trip that begins now
  flow.pass_us(10);
  flow.ack_told(5'000);
  const double once = 125'000 / (2 / 0.95) + 62.5;
  CHECK(flow.state.window == Approx(once).epsilon(0.001));
  CHECK(flow.state.reference == Approx(once).epsilon(0.001));
  // All further answers of the round trip start from the same reference: no overreaction...
  for (int i = 0; i < 5; ++i) {
    flow.pass_us(1);
    flow.ack_told(5'000);
  }
  CHECK(flow.state.window == Approx(once / (2 / 0.95) + 62.5).epsilon(0.001));
  CHECK(flow.state.reference == Approx(once).epsilon(0.001));
  // ... and it moves with the first packet that was sent since.
  flow.send(5'000);
  flow.ack_told(95'000);
  CHECK(flow.state.reference == Approx(once).epsilon(0.001));
  flow.pass_us(1);
  flow.ack_told(5'000);
  CHECK(flow.state.reference == flow.state.window);
}

TEST_CASE("hpcc: with units counts are read in whole ones; what is cut off counts the next time") {
  HpccFlow flow({{"int_multi", 4}});
  flow.send(100'000);
  flow.load(0, 0.5);
  flow.queue(0, 1000);
  flow.pass_us(10);  // 62,500 bytes: 122 units and 36 bytes
  flow.ack_told(5'000);
  flow.pass_us(10);  // 125,000: 244 units
  flow.ack_told(5'000);
  CHECK(flow.state.utilisation == Approx((122 * 512 + 3 * 320) / 125'000.0));
  // The counter wraps: from 2^30 - 40, the last unit but 472 bytes of it, to 511.
  flow.pass_us(10);
  flow.stack.hop[0].sent_bytes = kIntSentWrap - 40;
  flow.ack_told(5'000);
  flow.pass_us(10);
  flow.stack.hop[0].sent_bytes = 511;
  flow.ack_told(5'000);
  CHECK(flow.state.utilisation == Approx((512 + 3 * 320) / 125'000.0));
}

TEST_CASE("hpcc simulator: units of 128 and 80 bytes for each 25 Gb/s, and a window of payload") {
  const HpccFlow flow({}, "simulator");
  CHECK(flow.params.units.sent == 512);
  CHECK(flow.params.units.queue == 320);
  // A full packet is 4096 bytes of payload, 5000 on the wire, and 42 of records.
  CHECK(flow.state.window == Approx(125'000));
  CHECK(flow.decision.window_bytes == static_cast<std::uint64_t>(125'000 * 5042 / 4096.0));
  CHECK(flow.decision.rate == rate_from_gbps(100));
  CHECK(HpccFlow({{"payload_window", 0}}, "simulator").decision.window_bytes == 125'000);
}

TEST_CASE("hpcc: below eta it adds for max_stage round trips, then multiplies") {
  HpccFlow flow({{"max_stage", 2}});
  flow.state.window = flow.state.reference = 20'000;
  flow.load(0, 0.475);  // U / eta = 1/2
  flow.send(5'000);
  flow.pass_us(10);
  flow.ack_told(5'000);
  double expected = 20'000;
  for (unsigned round = 0; round < 6; ++round) {
    CAPTURE(round);
    flow.send(5'000);
    flow.pass_us(10);
    flow.ack_told(5'000);
    const bool multiplies = round % 3 == 2;
    expected = (multiplies ? 2 * expected : expected) + 62.5;
    CHECK(flow.state.window == Approx(expected).epsilon(0.001));
    CHECK(flow.state.stage == (multiplies ? 0 : round % 3 + 1));
  }
}

TEST_CASE("hpcc: the window is paced over T, and within its bounds") {
  HpccFlow flow({{"min_rate_mbps", 1000}});
  flow.send(10'000);
  flow.load(0, 1);
  flow.queue(0, 12'500'000);  // U = 101
  flow.pass_us(10);
  flow.ack_told(5'000);
  for (int i = 0; i < 20; ++i) {
    flow.send(5'000);
    flow.pass_us(10);
    flow.ack_told(5'000);
    CHECK(static_cast<double>(flow.decision.rate.bps) ==
          Approx(flow.state.window * 8 / 10e-6).epsilon(1e-6));
  }
  CHECK(flow.state.window >= 1'250);
  CHECK(flow.state.window < 1'400);
  CHECK(flow.decision.window_bytes == 5'000);  // less than a packet is paced, one at a time
  flow.load(0, 0);
  flow.queue(0, 0);
  for (int i = 0; i < 30; ++i) {
    flow.send(5'000);
    flow.pass_us(10);
    flow.ack_told(5'000);
  }
  CHECK(flow.state.window == Approx(125'000));
}

TEST_CASE("hpcc: records that cannot be compared say nothing") {
  HpccFlow flow;
  flow.send(400'000);
  flow.load(0, 1);
  flow.queue(0, 125'008);
  double share = 0.5;
  const auto told = [&](double us) {
    const double before = flow.state.utilisation;
    share += 0.03;  // no two spans are alike
    flow.load(0, share);
    flow.pass_us(us);
    flow.ack_told(5'000);
    return flow.state.utilisation != before;
  };
  CHECK_FALSE(told(10));  // the first
  CHECK(told(10));
  flow.stack.path = 8;  // other links
  CHECK_FALSE(told(5));
  CHECK(told(5));
  flow.stack.hops = 3;
  CHECK_FALSE(told(5));
  CHECK(told(5));
  const double before = flow.state.utilisation;
  flow.stack.hop[0].time_ns -= 3'000;  // overtaken: older than what came before, and not kept
  flow.ack_told(5'000);
  CHECK(flow.state.utilisation == before);
  CHECK(told(5));
  CHECK_FALSE(told(9'000));  // half a wrap of the clock is over
  CHECK(told(5));
  flow.stack.hop[0].rate_mbps = 0;
  CHECK_FALSE(told(5));
  flow.ack(5'000, 10);  // without telemetry
  CHECK(flow.decision.window_bytes > 5'000);
}

TEST_CASE("hpcc: counters that wrap between two records are compared all the same") {
  HpccFlow flow;
  flow.send(400'000'000);
  flow.load(0, 0.8);
  // 2^24 ns pass in 2,097 steps of 8 us, 2^30 bytes in some 13,400.
  for (int i = 0; i < 15'000; ++i) {
    flow.pass_us(8);
    flow.ack_told(5'000);
    if (i > 10) REQUIRE(flow.state.utilisation == Approx(0.8).epsilon(0.01));
  }
}

TEST_CASE("hpcc: a loss takes its share once per T") {
  HpccFlow flow;
  flow.send(100'000);
  flow.lose(5'000);
  flow.lose(5'000);
  CHECK(flow.state.window == Approx(62'500));
  CHECK(flow.state.reference == flow.state.window);
  flow.pass_us(10);
  flow.deliver(Signal::timeout);
  CHECK(flow.state.window == Approx(31'250));
}

TEST_CASE("hpcc: profiles are what their sources say") {
  const PortFacts facts = shelf_facts();
  const auto paper = Hpcc::make_params(values_of("hpcc", "paper", {}, facts), facts);
  CHECK(paper.eta == 0.95);
  CHECK(paper.max_stage == 5);
  CHECK(paper.increase == Approx(62.5));
  const auto simulator = Hpcc::make_params(values_of("hpcc", "simulator", {}, facts), facts);
  CHECK(simulator.max_stage == 0);
  CHECK(simulator.increase == Approx(50));       // 40 Mb/s at 100 Gb/s
  CHECK(simulator.min_window == Approx(1'250));  // 1 Gb/s
}
