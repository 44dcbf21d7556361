#include "cc/rate/staged_increase.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "dataplane/base/numbers/random.h"

using namespace paceline;
using namespace paceline::cc::staged;

namespace {

constexpr std::uint64_t kBitsPerMegabit = 1'000'000;

IncreaseParams paper_like() {
  IncreaseParams params;
  params.line_rate_bps = 100'000 * kBitsPerMegabit;
  params.additive_bps = 40 * kBitsPerMegabit;
  params.hyper_bps = 200 * kBitsPerMegabit;
  params.fast_recovery_stages = 5;
  params.byte_counter_on = true;
  return params;
}

Rates rates_at(std::uint64_t current_mbps, std::uint64_t target_mbps, std::uint32_t timer = 0,
               std::uint32_t bytes = 0) {
  return {current_mbps * kBitsPerMegabit, target_mbps * kBitsPerMegabit, timer, bytes};
}

// The definition, one event at a time.
void step(Rates& r, const IncreaseParams& p, Cause cause) {
  const std::uint32_t t = r.timer_stage;
  const std::uint32_t b = r.byte_stage;
  const std::uint32_t f = p.fast_recovery_stages;
  const std::uint32_t high = p.byte_counter_on ? std::max(t, b) : t;
  const std::uint32_t low = p.byte_counter_on ? std::min(t, b) : t;
  std::uint64_t rise = p.additive_bps;
  if (high < f) rise = 0;
  if (low > f) rise = p.hyper_ramp ? (low - f) * p.hyper_bps : p.hyper_bps;
  r.target_bps = std::min(p.line_rate_bps, r.target_bps + rise);
  r.current_bps = r.target_bps - (r.target_bps - r.current_bps) / 2;
  (cause == Cause::timer ? r.timer_stage : r.byte_stage) += 1;
}

// Uniform in 64 - shift bits; zero now and then.
std::uint64_t random_step(Random& random, std::uint64_t shift) {
  const std::uint64_t bits = random.next() >> shift;
  return random.below(8) == 0 ? 0 : bits;
}

bool same(const Rates& a, const Rates& b) {
  return a.current_bps == b.current_bps && a.target_bps == b.target_bps &&
         a.timer_stage == b.timer_stage && a.byte_stage == b.byte_stage;
}

}  // namespace

TEST_CASE("increase: fast recovery halves the gap F times and leaves the target") {
  Rates r = rates_at(40'000, 80'000);
  std::uint64_t gap = 40'000 * kBitsPerMegabit;
  for (std::uint32_t i = 1; i <= 5; ++i) {
    increase(r, paper_like(), Cause::timer, 1);
    gap /= 2;
    CHECK(r.target_bps == 80'000 * kBitsPerMegabit);
    CHECK(r.current_bps == 80'000 * kBitsPerMegabit - gap);
    CHECK(r.timer_stage == i);
  }
  increase(r, paper_like(), Cause::timer, 1);  // the sixth raises the target
  CHECK(r.target_bps == 80'040 * kBitsPerMegabit);
}

TEST_CASE("increase: either counter alone ends fast recovery") {
  Rates by_timer = rates_at(40'000, 80'000, 5, 0);
  increase(by_timer, paper_like(), Cause::bytes, 1);
  CHECK(by_timer.target_bps == 80'040 * kBitsPerMegabit);
  Rates by_bytes = rates_at(40'000, 80'000, 0, 5);
  increase(by_bytes, paper_like(), Cause::timer, 1);
  CHECK(by_bytes.target_bps == 80'040 * kBitsPerMegabit);
  Rates neither = rates_at(40'000, 80'000, 4, 4);
  increase(neither, paper_like(), Cause::timer, 1);
  CHECK(neither.target_bps == 80'000 * kBitsPerMegabit);
}

TEST_CASE("increase: hyper increase only when both counters exceed F") {
  for (const auto& [timer, bytes, rise] :
       {std::tuple{100U, 5U, 40U}, std::tuple{5U, 100U, 40U}, std::tuple{6U, 6U, 200U},
        std::tuple{9U, 6U, 200U}, std::tuple{5U, 6U, 40U}}) {
    CAPTURE(timer, bytes);
    Rates r = rates_at(40'000, 50'000, timer, bytes);
    increase(r, paper_like(), Cause::timer, 1);
    CHECK(r.target_bps == (50'000 + rise) * kBitsPerMegabit);
  }
}

TEST_CASE("increase: the hyper ramp steps by i times R_HAI, i counted by the slower counter") {
  IncreaseParams params = paper_like();
  params.hyper_ramp = true;
  Rates r = rates_at(50'000, 50'000, 7, 9);
  increase(r, params, Cause::timer, 1);  // i = 7 - 5
  CHECK(r.target_bps == 50'400 * kBitsPerMegabit);
  increase(r, params, Cause::timer, 1);  // i = 8 - 5
  CHECK(r.target_bps == 51'000 * kBitsPerMegabit);
  increase(r, params, Cause::timer, 3);  // then the byte counter, at 9, limits: 3 x (9 - 5)
  CHECK(r.target_bps == (51'000 + 3 * 800) * kBitsPerMegabit);
}

TEST_CASE("increase: with the byte counter off the timer alone decides") {
  IncreaseParams params = paper_like();
  params.byte_counter_on = false;
  params.fast_recovery_stages = 1;
  Rates r = rates_at(40'000, 50'000);
  increase(r, params, Cause::timer, 1);
  CHECK(r.target_bps == 50'000 * kBitsPerMegabit);  // fast recovery
  increase(r, params, Cause::timer, 1);
  CHECK(r.target_bps == 50'040 * kBitsPerMegabit);  // additive
  increase(r, params, Cause::timer, 1);
  CHECK(r.target_bps == 50'240 * kBitsPerMegabit);  // hyper
}

TEST_CASE("increase: target and rate end at the line rate, exactly, and stay there") {
  Rates r = rates_at(1, 99'990);
  increase(r, paper_like(), Cause::timer, 1'000'000'000'000);
  CHECK(r.current_bps == 100'000 * kBitsPerMegabit);
  CHECK(r.target_bps == 100'000 * kBitsPerMegabit);
  CHECK(at_rest(r, paper_like()));
  CHECK(r.timer_stage == 0xFFFF'FFFFU);  // saturates, does not wrap
  increase(r, paper_like(), Cause::bytes, 3);
  CHECK(r.current_bps == 100'000 * kBitsPerMegabit);
}

TEST_CASE("increase: many events at once equal as many single ones, to the bit") {
  const std::uint64_t seed = 20'150'817;
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 3000; ++round) {
    IncreaseParams params;
    params.line_rate_bps = 1 + random.below(400'000 * kBitsPerMegabit);
    // Steps from absurdly small to beyond the line rate.
    params.additive_bps = random_step(random, 20 + random.below(44));
    params.hyper_bps = random_step(random, 20 + random.below(36));
    params.additive_bps %= 2 * params.line_rate_bps;
    params.hyper_bps %= 2 * params.line_rate_bps;
    params.fast_recovery_stages = static_cast<std::uint32_t>(random.below(8));
    params.hyper_ramp = random.below(2) == 0;
    params.byte_counter_on = random.below(2) == 0;
    Rates at_once;
    at_once.target_bps = 1 + random.below(params.line_rate_bps);
    at_once.current_bps = 1 + random.below(at_once.target_bps);
    Rates singly = at_once;
    for (int burst = 0; burst < 6; ++burst) {
      const Cause cause =
          params.byte_counter_on && random.below(2) == 0 ? Cause::bytes : Cause::timer;
      const std::uint64_t events = random.below(burst == 5 ? 2000 : 12);
      increase(at_once, params, cause, events);
      for (std::uint64_t i = 0; i < events; ++i) step(singly, params, cause);
      CAPTURE(round, burst, events, params.line_rate_bps, params.additive_bps, params.hyper_bps);
      REQUIRE(same(at_once, singly));
      REQUIRE(at_once.current_bps <= at_once.target_bps);
      REQUIRE(at_once.target_bps <= params.line_rate_bps);
    }
  }
}

TEST_CASE("increase: a long climb is exact however its events are split") {
  // 20 million additive steps of 4 kb/s: if this stepped, 200 rounds would take minutes.
  IncreaseParams params = paper_like();
  params.additive_bps = 4'000;
  params.hyper_bps = 0;
  for (std::uint64_t split = 1; split <= 200; ++split) {
    Rates whole = rates_at(10, 20);
    Rates parts = whole;
    const std::uint64_t events = 20'000'000;
    increase(whole, params, Cause::timer, events);
    increase(parts, params, Cause::timer, split * 99'991);
    increase(parts, params, Cause::timer, events - split * 99'991);
    REQUIRE(same(whole, parts));
    REQUIRE(whole.target_bps == 20 * kBitsPerMegabit + (events - 5) * 4'000);
  }
}
