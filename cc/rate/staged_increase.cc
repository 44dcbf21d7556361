#include "cc/rate/staged_increase.h"

#include <algorithm>
#include <limits>

namespace paceline::cc::staged {
namespace {

constexpr std::uint32_t kMaxStage = std::numeric_limits<std::uint32_t>::max();

// `events` times: target += step, bounded by the line rate; rate = middle, rounded up.
//
// With gap = target - rate, one event makes gap' = floor((gap + step) / 2) while the target is
// below the line rate. That map contracts to a fixed point within 64 events; from there on only the
// target moves, by `step` each, so the rest of the climb is one multiplication. At the line rate
// the gap just halves.
void climb(Rates& rates, std::uint64_t line, std::uint64_t step, std::uint64_t events) {
  std::uint64_t target = rates.target_bps;
  std::uint64_t gap = target - rates.current_bps;
  while (events > 0) {
    if (step == 0 || target >= line) {
      gap = events < 64 ? gap >> events : 0;
      break;
    }
    const std::uint64_t before = target;
    const std::uint64_t last_gap = gap;
    target = line - target <= step ? line : target + step;
    gap = (gap + (target - before)) / 2;
    --events;
    if (gap == last_gap && target < line) {
      const std::uint64_t skip = std::min(events, (line - target - 1) / step);
      target += skip * step;
      events -= skip;
    }
  }
  rates.target_bps = target;
  rates.current_bps = target - gap;
}

// The increment of the next event of a cause, and for how many events it stays the same.
struct Step {
  std::uint64_t bps;
  std::uint64_t events;
};

Step next_step(const IncreaseParams& params, std::uint32_t own, std::uint32_t other, bool alone) {
  constexpr std::uint64_t kForEver = std::numeric_limits<std::uint64_t>::max();
  const std::uint32_t f = params.fast_recovery_stages;
  if (own < f && (alone || other < f)) return {0, f - own};
  if (!alone && other <= f) return {params.additive_bps, kForEver};
  if (own <= f) return {params.additive_bps, std::uint64_t{f} + 1 - own};
  if (!params.hyper_ramp || params.hyper_bps == 0) return {params.hyper_bps, kForEver};
  const std::uint64_t i = (alone ? own : std::min(own, other)) - f;
  // No step beyond the line rate: it also keeps the product from overflowing.
  if (i >= params.line_rate_bps / params.hyper_bps + 1) return {params.line_rate_bps, kForEver};
  const bool constant = own == kMaxStage || (!alone && own >= other);
  return {i * params.hyper_bps, constant ? kForEver : 1};
}

}  // namespace

void increase(Rates& rates, const IncreaseParams& params, Cause cause, std::uint64_t events) {
  std::uint32_t& own = cause == Cause::timer ? rates.timer_stage : rates.byte_stage;
  const std::uint32_t other = cause == Cause::timer ? rates.byte_stage : rates.timer_stage;
  const bool alone = cause == Cause::timer && !params.byte_counter_on;
  while (events > 0) {
    const bool rest = at_rest(rates, params);
    const Step step = rest ? Step{0, events} : next_step(params, own, other, alone);
    const std::uint64_t count = std::min(events, step.events);
    if (!rest) climb(rates, params.line_rate_bps, step.bps, count);
    own = static_cast<std::uint32_t>(std::min<std::uint64_t>(kMaxStage, own + count));
    events -= count;
  }
}

}  // namespace paceline::cc::staged
