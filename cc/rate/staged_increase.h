// The increase of a rate after a cut, as QCN has it (IEEE 802.1Qau) and DCQCN took it over (SIGCOMM
// 2015): pure integer functions of rates and stages.
//
// Every expiry of the timer and every filled byte counter is one increase event. What it does
// follows from the expiries T and BC counted since the last cut, this one excluded:
//   max(T, BC) <  F   fast recovery      target stays
//   min(T, BC) >  F   hyper increase     target += R_HAI, or i * R_HAI with i = min(T, BC) - F
//   otherwise         additive increase  target += R_AI
// and always rate = the middle between rate and target. With the byte counter off, T decides alone.
// The middle is rounded up, so that the rate reaches its target and the context can come to rest.
#pragma once

#include <cstdint>

namespace paceline::cc::staged {

struct IncreaseParams {
  std::uint64_t line_rate_bps = 0;
  std::uint64_t additive_bps = 0;
  std::uint64_t hyper_bps = 0;
  std::uint32_t fast_recovery_stages = 0;  // F
  bool hyper_ramp = false;                 // i * R_HAI instead of R_HAI
  bool byte_counter_on = false;
};

struct Rates {
  std::uint64_t current_bps = 0;  // RC <= RT
  std::uint64_t target_bps = 0;   // RT <= line rate
  std::uint32_t timer_stage = 0;  // T, saturating
  std::uint32_t byte_stage = 0;   // BC, saturating
};

enum class Cause : std::uint8_t { timer, bytes };

// Applies `events` increase events of one cause. Work is bounded by the width of the numbers, not
// by `events`; only a hyper ramp steps singly, at most sqrt(2 * line / R_HAI) times until it
// saturates.
void increase(Rates& rates, const IncreaseParams& params, Cause cause, std::uint64_t events);

// No increase event can change the rates any more.
constexpr bool at_rest(const Rates& rates, const IncreaseParams& params) {
  return rates.current_bps == rates.target_bps &&
         (rates.target_bps >= params.line_rate_bps ||
          (params.additive_bps == 0 && params.hyper_bps == 0));
}

}  // namespace paceline::cc::staged
