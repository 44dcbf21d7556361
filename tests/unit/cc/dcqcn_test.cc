// One case per rule of DCQCN. Numbers are worked out by hand beside each check.
#include "cc/rate/dcqcn.h"

#include <cstring>

#include "dataplane/base/numbers/random.h"
#include "dcqcn_support.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

namespace {

constexpr std::uint64_t kGiga = 1'000'000'000;
constexpr std::uint64_t kMega = 1'000'000;

}  // namespace

TEST_CASE("dcqcn: starts at line rate, with nothing to wait for") {
  const DcqcnSender s("paper", 100);
  CHECK(s.rate() == 100 * kGiga);
  CHECK(s.decision.wake_at == kNeverNanos);
  CHECK(s.decision.wake_bytes == kUnlimited);
  CHECK(s.decision.window_bytes == kUnlimited);
  CHECK(s.decision.ceiling == kUnlimited);
  CHECK(s.decision.limiter == Limiter::path);
  CHECK_FALSE(s.decision.timed);
}

TEST_CASE("dcqcn: without CNPs the rate stays at line, whatever is sent and however long") {
  DcqcnSender s("paper", 100);
  s.tick(5 * kMs, 1'000'000'000);
  CHECK(s.rate() == 100 * kGiga);
  CHECK(s.decision.wake_at == kNeverNanos);
  CHECK(s.decision.wake_bytes == kUnlimited);
}

TEST_CASE("dcqcn: a start rate below line climbs from the first timer on") {
  DcqcnSender s("paper", 100, {{"start_rate", 0.5}});
  CHECK(s.rate() == 50 * kGiga);
  CHECK(s.decision.wake_at.count == 55 * kUs);
  s.tick(6 * 55 * kUs);  // five stages of fast recovery find no gap, the sixth event adds R_AI
  CHECK(s.target() == 50 * kGiga + 40 * kMega);
  CHECK(s.rate() == 50 * kGiga + 20 * kMega);
}

TEST_CASE("dcqcn: a handover starts at the smaller of handed-over and own start rate") {
  const auto start_with = [](std::uint64_t mbps) {
    DcqcnSender s("paper", 100);
    const Handover handover{rate_from_mbps(mbps), 0, 0, 0};
    Event event;
    event.now = Nanos{7 * kUs};
    event.handover = &handover;
    Dcqcn::on_event(s.state, s.params, event, s.decision);
    return s.decision;
  };
  CHECK(start_with(30'000).rate.bps == 30 * kGiga);
  CHECK(start_with(30'000).wake_at.count == (7 + 55) * kUs);
  CHECK(start_with(0).rate.bps == 100 * kGiga);        // no rate handed over
  CHECK(start_with(400'000).rate.bps == 100 * kGiga);  // more than the line carries
  CHECK(start_with(3).rate.bps == 100 * kMega);        // less than the minimum rate
}

TEST_CASE("dcqcn: at once: target, cut, alpha, in this order") {
  DcqcnSender s("paper", 100, {{"initial_alpha", 0.5}});
  s.cnp(10 * kUs);
  CHECK(s.target() == 100 * kGiga);
  CHECK(s.rate() == 75 * kGiga);  // 1 - 0.5 / 2: alpha before its update
  CHECK(s.alpha(10 * kUs) == (1 - 1.0 / 256) * 0.5 + 1.0 / 256);
  CHECK(s.decision.wake_at.count == (10 + 55) * kUs);
  CHECK(s.decision.wake_bytes == 10'000'000);
}

TEST_CASE(
    "dcqcn: at once: alpha decays by 1 - g per alpha period without a CNP, from the last CNP") {
  DcqcnSender s("paper", 100);
  s.cnp(0);
  CHECK(s.alpha(0) == 1);
  const double keep = 1 - 1.0 / 256;
  CHECK(s.alpha(55 * kUs - 1) == 1);
  CHECK(s.alpha(55 * kUs) == keep);
  CHECK(s.alpha(5 * 55 * kUs) == Approx(keep * keep * keep * keep * keep).epsilon(1e-15));
  s.cnp(200 * kUs);  // three periods are over; the fourth starts over here
  const double expected = keep * (keep * keep * keep) + 1.0 / 256;
  CHECK(s.alpha(254 * kUs) == Approx(expected).epsilon(1e-15));
  CHECK(s.alpha(255 * kUs) == Approx(keep * expected).epsilon(1e-15));
}

TEST_CASE("dcqcn: at once: one cut per decrease period, an early CNP acts at its end") {
  DcqcnSender s("paper", 100);
  s.cnp(0);
  CHECK(s.rate() == 50 * kGiga);
  s.cnp(20 * kUs);
  s.cnp(30 * kUs);
  CHECK(s.rate() == 50 * kGiga);
  CHECK(s.decision.wake_at.count == 50 * kUs);
  s.tick(50 * kUs - 1);
  CHECK(s.rate() == 50 * kGiga);
  s.tick(50 * kUs);  // two CNPs, one cut
  CHECK(s.rate() == 25 * kGiga);
  s.cnp(100 * kUs);  // a full period later: at once
  CHECK(s.rate() == Approx(12.5e9).epsilon(1e-3));
}

TEST_CASE("dcqcn: a decrease period of 0 lets every CNP cut, in both readings") {
  for (const double sampling : {0.0, 1.0}) {
    DcqcnSender s("paper", 100, {{"decrease_period_us", 0}, {"cnp_sampling", sampling}});
    s.cnp(1);
    s.cnp(1);
    s.cnp(2);
    CHECK(s.rate() == 12'500 * kMega);
    CHECK(s.state.cut_at == kNeverNanos.count);
  }
}

TEST_CASE("dcqcn: clamp_target sets the target at every cut") {
  DcqcnSender s("paper", 100);
  s.cnp(0);
  s.cnp(50 * kUs);
  CHECK(s.target() == 50 * kGiga);
  CHECK(s.rate() == 25 * kGiga);
}

TEST_CASE("dcqcn: without clamp_target only the first cut after an increase sets the target") {
  DcqcnSender s("paper", 100, {{"clamp_target", 0}});
  s.cnp(0);
  s.cnp(50 * kUs);
  CHECK(s.rate() == 25 * kGiga);
  CHECK(s.target() == 100 * kGiga);  // no increase in between
  s.tick(105 * kUs);                 // one increase, to the middle
  CHECK(s.rate() == 62'500 * kMega);
  s.cnp(110 * kUs);
  CHECK(s.target() == 62'500 * kMega);
  s.cnp(160 * kUs);
  CHECK(s.target() == 62'500 * kMega);
}

TEST_CASE(
    "dcqcn: clamp_after_timer 0: an increase by the timer does not count, one by bytes does") {
  DcqcnSender s("paper", 100, {{"clamp_target", 0}, {"clamp_after_timer", 0}});
  s.cnp(0);
  s.tick(55 * kUs);
  CHECK(s.rate() == 75 * kGiga);
  s.cnp(60 * kUs);
  CHECK(s.target() == 100 * kGiga);
  const std::uint64_t before = s.rate();
  s.tick(61 * kUs, 10'000'000);
  const std::uint64_t raised = s.rate();
  CHECK(raised > before);
  s.cnp(110 * kUs);
  CHECK(s.target() == raised);
}

TEST_CASE("dcqcn: min_decrease_factor bounds one cut, min_rate bounds the rate") {
  DcqcnSender s("paper", 100, {{"min_decrease_factor", 0.8}, {"min_rate_mbps", 70'000}});
  s.cnp(0);
  CHECK(s.rate() == 80 * kGiga);  // not 50
  s.cnp(50 * kUs);
  CHECK(s.rate() == 70 * kGiga);  // not 64
  s.cnp(100 * kUs);
  CHECK(s.rate() == 70 * kGiga);
  CHECK(s.target() == 70 * kGiga);
  DcqcnSender never("paper", 100, {{"min_decrease_factor", 1}});
  never.cnp(0);
  CHECK(never.rate() == 100 * kGiga);  // 1: no cut at all
}

TEST_CASE("dcqcn: a cut restarts timer, byte counter and stages") {
  DcqcnSender s("paper", 100);
  s.cnp(0);
  s.tick(3 * 55 * kUs, 25'000'000);
  CHECK(s.state.rates.timer_stage == 3);
  CHECK(s.state.rates.byte_stage == 2);
  CHECK(s.decision.wake_bytes == 5'000'000);
  s.cnp(200 * kUs, 1'000'000);
  CHECK(s.state.rates.timer_stage == 0);
  CHECK(s.state.rates.byte_stage == 0);
  CHECK(s.decision.wake_bytes == 10'000'000);
  CHECK(s.decision.wake_at.count == 255 * kUs);
}

TEST_CASE("dcqcn: fast recovery by timer, then additive increase") {
  DcqcnSender s("paper", 100);
  s.cnp(0);
  s.cnp(50 * kUs);  // rate 25, target 50
  const std::int64_t from = 50 * kUs;
  for (int i = 1; i <= 5; ++i) {
    s.tick(from + i * 55 * kUs);
    CHECK(s.rate() == 50 * kGiga - (25 * kGiga >> i));
    CHECK(s.target() == 50 * kGiga);
  }
  s.tick(from + 6 * 55 * kUs);
  CHECK(s.target() == 50'040 * kMega);
  s.tick(from + 7 * 55 * kUs);
  CHECK(s.target() == 50'080 * kMega);
}

TEST_CASE(
    "dcqcn: timer and byte counter count stages of their own; together they reach hyper increase") {
  DcqcnSender s("paper", 100, {{"hyper_ramp", 0}});
  s.cnp(0);
  s.cnp(50 * kUs);
  s.tick(50 * kUs + 6 * 55 * kUs, 0);  // T = 6
  CHECK(s.target() == 50'040 * kMega);
  s.tick(381 * kUs, 60'000'000);  // BC = 6; all six additive: before the sixth, BC was 5
  CHECK(s.state.rates.byte_stage == 6);
  CHECK(s.target() == 50'280 * kMega);
  s.tick(382 * kUs, 10'000'000);  // both above F = 5
  CHECK(s.target() == 50'480 * kMega);
  s.tick(50 * kUs + 7 * 55 * kUs);
  CHECK(s.target() == 50'680 * kMega);
}

TEST_CASE("dcqcn: bytes count across events; several stages in one event") {
  DcqcnSender s("paper", 100);
  s.cnp(0);
  s.tick(1 * kUs, 9'999'999);
  CHECK(s.state.rates.byte_stage == 0);
  CHECK(s.decision.wake_bytes == 1);
  s.tick(2 * kUs, 1);
  CHECK(s.state.rates.byte_stage == 1);
  CHECK(s.rate() == 75 * kGiga);
  s.tick(3 * kUs, 20'000'001);
  CHECK(s.state.rates.byte_stage == 3);
  CHECK(s.decision.wake_bytes == 9'999'999);
}

TEST_CASE("dcqcn: bytes of an event count before the timers that came due with it") {
  // The engine ticks before the first send after wake_at, so they were sent before.
  DcqcnSender s("paper", 100, {{"fast_recovery_stages", 1}, {"hyper_ramp", 0}});
  s.cnp(0);
  s.cnp(20 * kUs);                  // cut at 50 us
  s.tick(50 * kUs, 10'000'000);     // a byte stage of the time before the cut
  CHECK(s.target() == 75 * kGiga);  // so it raised the rate first, and the cut took that as target
  CHECK(s.rate() == 37'500 * kMega);
  CHECK(s.state.rates.byte_stage == 0);
}

TEST_CASE("dcqcn: a byte counter of 0 is off") {
  DcqcnSender s("hpcc-repo", 100);
  s.cnp(0);
  s.tick(5 * kUs, 1'000'000'000'000);
  CHECK(s.decision.wake_bytes == kUnlimited);
  CHECK(s.state.rates.byte_stage == 0);
}

TEST_CASE("dcqcn: back at line rate there is nothing to wait for") {
  DcqcnSender s("paper", 100);
  s.cnp(0);
  CHECK(s.decision.wake_at != kNeverNanos);
  s.tick(100 * kMs);
  CHECK(s.rate() == 100 * kGiga);
  CHECK(s.decision.wake_at == kNeverNanos);
  CHECK(s.decision.wake_bytes == kUnlimited);
  // The next CNP cuts by what is left of alpha after 100 ms / 55 us quiet periods: (255/256)^1818
  // / 2.
  s.cnp(100 * kMs);
  CHECK(s.rate() == Approx(100e9 * (1 - 8.13e-4 / 2)).epsilon(1e-5));
  CHECK(s.rate() < 100 * kGiga);
  CHECK(s.decision.wake_at.count == 100 * kMs + 55 * kUs);
}

TEST_CASE("dcqcn: with both steps at 0 recovery ends at the target") {
  DcqcnSender s("paper", 100, {{"additive_increase_mbps", 0}, {"hyper_increase_mbps", 0}});
  s.cnp(0);
  s.cnp(50 * kUs);
  s.tick(50 * kUs + 100 * 55 * kUs);
  CHECK(s.rate() == 50 * kGiga);
  CHECK(s.decision.wake_at == kNeverNanos);
}

TEST_CASE("dcqcn: sampled: the first CNP only arms the check, which cuts 1 ns after its period") {
  DcqcnSender s("hpcc-repo", 100);
  s.cnp(1000);
  CHECK(s.rate() == 100 * kGiga);
  CHECK(s.decision.wake_at.count == 5001);
  s.tick(5000);
  CHECK(s.rate() == 100 * kGiga);
  s.tick(5001);
  // Four quiet alpha periods: the first CNP starts alpha, it is no CNP of a period.
  const double keep = 1 - 1.0 / 256;
  const double alpha = keep * keep * keep * keep;
  CHECK(s.rate() == static_cast<std::uint64_t>(100e9 * (1 - alpha / 2)));
  CHECK(s.target() == 100 * kGiga);
}

TEST_CASE("dcqcn: sampled: checks lie on a fixed grid and cut only after a CNP in their period") {
  DcqcnSender s("hpcc-repo", 100);
  s.cnp(0);
  s.tick(4001);
  const std::uint64_t first = s.rate();
  CHECK(s.decision.wake_at.count == 4001 + 300 * kUs);  // only the increase timer is left
  s.tick(20'000);
  CHECK(s.rate() == first);
  s.cnp(21'000);  // in the period that ends at 24'001
  s.cnp(22'500);
  CHECK(s.rate() == first);
  CHECK(s.decision.wake_at.count == 24'001);
  s.tick(24'001);
  CHECK(s.rate() < first);
  s.cnp(24'001);  // the check of this instant is over
  CHECK(s.decision.wake_at.count == 28'001);
}

TEST_CASE("dcqcn: sampled: alpha rises once per period with CNPs, falls once per period without") {
  DcqcnSender s("hpcc-repo", 100, {{"initial_alpha", 0.5}});
  const double g = 1.0 / 256;
  s.cnp(0);
  s.cnp(1200);
  s.cnp(1300);
  s.cnp(1900);                            // three CNPs in [1, 2) us count as one
  CHECK(s.alpha(1999) == (1 - g) * 0.5);  // [0, 1) us: the first CNP does not count
  const double raised = (1 - g) * ((1 - g) * 0.5) + g;
  CHECK(s.alpha(2000) == raised);
  CHECK(s.alpha(2999) == raised);
  CHECK(s.alpha(5000) == Approx(raised * (1 - g) * (1 - g) * (1 - g)).epsilon(1e-15));
}

TEST_CASE("dcqcn: sampled: an increase due at the instant of a check comes before the cut") {
  // Checks at 4 k us + 1 ns; the first cut at 4.001 us, so the timer expires at 304.001 us:
  // together with check 76.
  DcqcnSender s("hpcc-repo", 100, {{"alpha_gain", 1.0 / 65536}});
  s.cnp(0);
  s.tick(4001);
  const std::uint64_t low = s.rate();
  s.cnp(301'000);
  s.tick(304'001);
  CHECK(s.target() == 100 * kGiga - (100 * kGiga - low) / 2);  // the cut took the raised rate
  CHECK(s.state.rates.timer_stage == 0);
}

TEST_CASE("dcqcn: sampled: the increase timer starts with the first cut, not with the first CNP") {
  DcqcnSender s("hpcc-repo", 100);
  s.cnp(0);
  CHECK(s.state.increase_at == kNeverNanos.count);
  s.tick(4001);
  CHECK(s.state.increase_at == 304'001);
}

TEST_CASE("dcqcn: first_cnp_rate sets rate and target once; sampled cuts from there") {
  DcqcnSender s("hpcc-repo", 100, {{"first_cnp_rate", 0.4}});
  s.cnp(0);
  CHECK(s.rate() == 40 * kGiga);
  CHECK(s.target() == 40 * kGiga);
  s.tick(4001);
  CHECK(s.rate() < 21 * kGiga);
  s.tick(3000 * kMs);
  const std::uint64_t recovered = s.rate();
  CHECK(recovered > 40 * kGiga);
  s.cnp(3001 * kMs);
  CHECK(s.rate() >= recovered);  // not the first CNP any more
}

TEST_CASE("dcqcn: first_cnp_rate at once stands for the cut, and never raises the rate") {
  DcqcnSender s("paper", 100, {{"first_cnp_rate", 0.4}});
  s.cnp(0);
  CHECK(s.rate() == 40 * kGiga);
  CHECK(s.decision.wake_at.count == 55 * kUs);
  s.cnp(10 * kUs);  // within the decrease period that the first one opened
  CHECK(s.rate() == 40 * kGiga);
  s.tick(50 * kUs);
  CHECK(s.rate() == 20 * kGiga);
  DcqcnSender low("paper", 100, {{"first_cnp_rate", 0.4}, {"start_rate", 0.2}});
  low.cnp(0);
  CHECK(low.rate() == 20 * kGiga);
}

TEST_CASE("dcqcn: new parameters take hold at the next event, bounds included") {
  DcqcnSender s("paper", 100);
  s.cnp(0);
  s.cnp(50 * kUs);
  s.params = DcqcnSender("paper", 100, {{"min_rate_mbps", 60'000}}).params;
  s.tick(51 * kUs);
  CHECK(s.rate() == 60 * kGiga);
  CHECK(s.target() == 60 * kGiga);
  DcqcnSender untouched("paper", 100);
  untouched.params = DcqcnSender("paper", 40).params;
  untouched.tick(1);
  CHECK(untouched.rate() == 40 * kGiga);
  untouched.params = DcqcnSender("paper", 100).params;
  untouched.tick(2);
  CHECK(untouched.rate() == 100 * kGiga);  // no CNP yet: follows the start rate
}

// The unloaded round trip is 10 us: at 100 Gb/s 125,000 bytes.
TEST_CASE("dcqcn: window_round_trips caps what is in flight, in proportion to the rate") {
  CHECK(DcqcnSender("", 100).decision.window_bytes == kUnlimited);
  DcqcnSender s("", 100, {{"window_round_trips", 1}});
  CHECK(s.decision.window_bytes == 125'001);
  s.cnp(1 * kUs);  // alpha is 1: a half
  CHECK(s.rate() == 50'000'000'000);
  CHECK(s.decision.window_bytes == 62'501);
  s.tick(56 * kUs);
  CHECK(s.decision.window_bytes == 93'751);
  // Taken back while it runs.
  s.params.window = {};
  s.tick(57 * kUs);
  CHECK(s.decision.window_bytes == kUnlimited);
}

TEST_CASE("dcqcn: events it does not want change nothing") {
  for (const Signal signal :
       {Signal::ack, Signal::nack, Signal::timeout, Signal::message, Signal::idle}) {
    DcqcnSender s("paper", 100);
    s.cnp(0);
    const Dcqcn::State before = s.state;
    s.on(1 * kUs, signal);
    CHECK(std::memcmp(&before, &s.state, sizeof before) == 0);
  }
  CHECK(find("dcqcn")->wants == signal_bit(Signal::cnp));
}

TEST_CASE("dcqcn: an idle age costs no loop and ends at line rate") {
  // 2^62 ns are 146 years: 4.6e15 alpha periods and 1.5e13 timer expiries of hpcc-repo.
  for (const std::string_view profile :
       {"paper", "mellanox", "hpcc-repo", "hpcc-repo-paper", "tuned-incast", "tuned-websearch",
        "tuned-moe", "tuned-core", "tuned-hadoop"}) {
    CAPTURE(profile);
    DcqcnSender s(profile, 100);
    s.cnp(0);
    s.cnp(3 * kUs);
    s.tick(std::int64_t{1} << 62, ~std::uint64_t{0});
    CHECK(s.rate() == 100 * kGiga);
    CHECK(s.alpha(std::int64_t{1} << 62) == 0);
    s.cnp((std::int64_t{1} << 62) + 1);
    s.tick((std::int64_t{1} << 62) + 60 * kUs);
    CHECK(s.rate() <= 100 * kGiga);
    CHECK(s.rate() > 99 * kGiga);
  }
}

TEST_CASE("dcqcn: profiles are the columns of the parameter table") {
  using D = Dcqcn;
  const auto paper = values_of("dcqcn", "paper", {}, facts_at(100));
  CHECK(paper[D::kAdditiveIncreaseMbps] == 40);
  CHECK(paper[D::kHyperIncreaseMbps] == 200);
  CHECK(values_of("dcqcn", "paper", {}, facts_at(400))[D::kHyperIncreaseMbps] == 800);
  CHECK(values_of("dcqcn", "paper", {}, facts_at(400))[D::kAdditiveIncreaseMbps] == 40);
  CHECK(paper[D::kIncreaseTimerUs] == 55);
  CHECK(paper[D::kAlphaPeriodUs] == 55);
  CHECK(paper[D::kDecreasePeriodUs] == 50);
  CHECK(paper[D::kByteCounter] == 10e6);
  CHECK(paper[D::kFastRecoveryStages] == 5);
  CHECK(paper[D::kAlphaGain] == 1.0 / 256);
  CHECK(paper[D::kMinDecreaseFactor] == 0.5);
  CHECK(paper[D::kClampTarget] == 1);

  const auto hpcc = values_of("dcqcn", "hpcc-repo", {}, facts_at(100));
  CHECK(hpcc[D::kAdditiveIncreaseMbps] == 20);
  CHECK(hpcc[D::kHyperIncreaseMbps] == 200);
  CHECK(hpcc[D::kIncreaseTimerUs] == 300);
  CHECK(hpcc[D::kAlphaPeriodUs] == 1);
  CHECK(hpcc[D::kDecreasePeriodUs] == 4);
  CHECK(hpcc[D::kByteCounter] == 0);
  CHECK(hpcc[D::kFastRecoveryStages] == 1);
  CHECK(hpcc[D::kMinRateMbps] == 1000);
  CHECK(hpcc[D::kClampTarget] == 0);

  auto hpcc_paper = values_of("dcqcn", "hpcc-repo-paper", {}, facts_at(100));
  CHECK(hpcc_paper[D::kAlphaPeriodUs] == 50);
  CHECK(hpcc_paper[D::kDecreasePeriodUs] == 50);
  CHECK(hpcc_paper[D::kIncreaseTimerUs] == 55);
  for (const auto timer : {D::kAlphaPeriodUs, D::kDecreasePeriodUs, D::kIncreaseTimerUs}) {
    hpcc_paper[timer] = hpcc[timer];
  }
  CHECK(hpcc_paper == hpcc);  // nothing but the timers differs

  const auto mellanox = values_of("dcqcn", "mellanox", {}, facts_at(400));
  CHECK(mellanox[D::kAlphaGain] == 5.0 / 1024);
  CHECK(mellanox[D::kInitialAlpha] == 1023.0 / 1024);
  CHECK(mellanox[D::kAdditiveIncreaseMbps] == 5);
  CHECK(mellanox[D::kHyperIncreaseMbps] == 50);
  CHECK(mellanox[D::kByteCounter] == 32'767);
  CHECK(mellanox[D::kIncreaseTimerUs] == 300);
  CHECK(mellanox[D::kMinRateMbps] == 1);

  CHECK(values_of("dcqcn", "default", {}, facts_at(100)) == paper);
}
