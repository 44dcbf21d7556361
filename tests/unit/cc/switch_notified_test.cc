// switch-notified, rule by rule: the cut of a notice, and the way back.
#include "cc/rate/switch_notified.h"

#include "dataplane/base/numbers/random.h"
#include "flow_driver.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

namespace {

using NotifiedFlow = FlowDriver<SwitchNotified>;

void notified(NotifiedFlow& flow, unsigned feedback) {
  Event e = flow.event(Signal::notice);
  e.feedback = static_cast<std::uint8_t>(feedback);
  flow.deliver(e);
}

void notified_pass(NotifiedFlow& flow, double us, std::uint64_t sent_bytes = 0) {
  flow.pass_us(us);
  Event e = flow.event(Signal::tick);
  e.sent_bytes = sent_bytes;
  flow.deliver(e);
}

double notified_gbps(const NotifiedFlow& flow) {
  return static_cast<double>(flow.decision.rate.bps) * 1e-9;
}

}  // namespace

TEST_CASE("switch-notified: a new flow begins at its share of the line rate, without a window") {
  const NotifiedFlow flow;
  CHECK(flow.decision.rate == rate_from_gbps(100));
  CHECK(flow.decision.window_bytes == kUnlimited);
  CHECK(flow.decision.wake_at == kNeverNanos);
  CHECK(NotifiedFlow({{"start_rate", 0.25}}).decision.rate == rate_from_gbps(25));
  CHECK(handed_over<SwitchNotified>(10).rate == rate_from_gbps(10));
  CHECK(handed_over<SwitchNotified>(400).rate == rate_from_gbps(100));
}

TEST_CASE("switch-notified: a notice cuts by Gd times its feedback, by half at most") {
  for (const auto& [feedback, left] :
       {std::pair{1U, 127.0 / 128}, std::pair{32U, 0.75}, std::pair{63U, 65.0 / 128}}) {
    CAPTURE(feedback);
    NotifiedFlow flow;
    notified(flow, feedback);
    CHECK(notified_gbps(flow) == Approx(100 * left));
  }
  NotifiedFlow steep({{"decrease_gain", 1.0 / 32}});
  notified(steep, 63);
  CHECK(notified_gbps(steep) == Approx(50));
  NotifiedFlow bounded({{"min_decrease_factor", 0.9}});
  notified(bounded, 63);
  CHECK(notified_gbps(bounded) == Approx(90));
  NotifiedFlow floor({{"min_rate_mbps", 60'000}});
  notified(floor, 63);
  notified(floor, 63);
  CHECK(notified_gbps(floor) == Approx(60));
}

TEST_CASE("switch-notified: notices that follow one another cut one another's rate") {
  NotifiedFlow flow;
  for (int i = 0; i < 3; ++i) notified(flow, 32);
  CHECK(notified_gbps(flow) == Approx(100 * 0.75 * 0.75 * 0.75));
  // No increase has come between: recovery leads back to where the first cut began.
  CHECK(flow.state.rates.target_bps == rate_from_gbps(100).bps);
}

TEST_CASE("switch-notified: fast recovery halves the gap, then the target rises") {
  NotifiedFlow flow({{"start_rate", 0.5}, {"fast_recovery_stages", 2}, {"byte_counter", 0}});
  notified(flow, 64 / 2);
  const double target = 50;
  CHECK(notified_gbps(flow) == Approx(37.5));
  CHECK(flow.decision.wake_at == flow.now + Nanos{55'000});
  notified_pass(flow, 55);
  CHECK(notified_gbps(flow) == Approx((37.5 + target) / 2));
  notified_pass(flow, 55);
  CHECK(notified_gbps(flow) == Approx((37.5 + 3 * target) / 4));
  notified_pass(flow, 55);
  CHECK(static_cast<double>(flow.state.rates.target_bps) * 1e-9 == Approx(target + 0.04));
}

TEST_CASE("switch-notified: the byte counter recovers as well, and counts from the cut") {
  NotifiedFlow flow({{"byte_counter", 1e6}});
  notified(flow, 32);
  CHECK(flow.decision.wake_bytes == 1'000'000);
  notified_pass(flow, 10, 999'999);
  CHECK(notified_gbps(flow) == Approx(75));
  notified_pass(flow, 10, 1);
  CHECK(notified_gbps(flow) == Approx(87.5));
  notified_pass(flow, 10, 400'000);
  notified(flow, 32);
  CHECK(flow.decision.wake_bytes == 1'000'000);
}

TEST_CASE("switch-notified: a cut after an increase takes the rate for its target") {
  for (const bool by_timer : {false, true}) {
    for (const double after_timer : {0.0, 1.0}) {
      CAPTURE(by_timer, after_timer);
      NotifiedFlow flow({{"clamp_after_timer", after_timer}, {"byte_counter", 1e6}});
      notified(flow, 32);
      notified_pass(flow, by_timer ? 55 : 1, by_timer ? 0 : 1'000'000);
      notified(flow, 32);
      const bool clamped = !by_timer || after_timer != 0;
      CHECK(static_cast<double>(flow.state.rates.target_bps) * 1e-9 ==
            Approx(clamped ? 87.5 : 100));
    }
  }
}

TEST_CASE("switch-notified: a gap may be split anywhere, with the same bits") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U, 4U);
  INFO("seed " << seed);
  Random random(seed);
  NotifiedFlow once, often;
  for (int i = 0; i < 200; ++i) {
    const auto us = static_cast<double>(1 + random.below(400));
    const auto feedback = static_cast<unsigned>(1 + random.below(63));
    once.pass_us(us);
    for (unsigned step = 0; step < 4; ++step) notified_pass(often, us / 4);
    REQUIRE(often.now == once.now);
    notified(once, feedback);
    notified(often, feedback);
    REQUIRE(once.decision.rate == often.decision.rate);
    REQUIRE(once.state.rates.target_bps == often.state.rates.target_bps);
    REQUIRE(once.decision.wake_at == often.decision.wake_at);
  }
}

TEST_CASE("switch-notified: nothing but notices cuts") {
  NotifiedFlow flow;
  for (const Signal signal : {Signal::cnp, Signal::timeout, Signal::idle, Signal::tick}) {
    flow.deliver(signal);
  }
  flow.send(5'000);
  flow.lose(5'000);
  CHECK(flow.decision.rate == rate_from_gbps(100));
}

TEST_CASE("switch-notified: the standard's values, increases scaled to the link") {
  const auto values = values_of("switch-notified", "qcn", {}, facts_at(100));
  const SwitchNotified::Params p = SwitchNotified::make_params(values, facts_at(100));
  CHECK(p.increase.additive_bps == 50'000'000);
  CHECK(p.increase.hyper_bps == 500'000'000);
  CHECK(p.increase_timer_ns == 15'000'000);
  CHECK(p.byte_counter == 150'000);
  CHECK_FALSE(p.clamp_after_timer);
}
