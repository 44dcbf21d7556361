// A limit of bytes in flight for algorithms that set a rate: what the rate sends in a number of
// unloaded round trips. The sender waits if acknowledgements come later than that.
#pragma once

#include <cstdint>

#include "cc/interface/algorithm.h"
#include "cc/interface/decision.h"
#include "cc/interface/param_spec.h"

namespace paceline::cc {

struct RateWindow {
  double bytes_per_bps = 0;  // 0: no cap

  // A byte at least, which lets one packet go at a time.
  std::uint64_t of(Rate rate) const {
    if (bytes_per_bps == 0) return kUnlimited;
    return static_cast<std::uint64_t>(static_cast<double>(rate.bps) * bytes_per_bps) + 1;
  }
};

// 10 us if the path is not known.
inline double unloaded_rtt_ns(const PortFacts& facts) {
  return facts.base_rtt_ns != 0 ? facts.base_rtt_ns : 10'000;
}

inline RateWindow rate_window(double round_trips, const PortFacts& facts) {
  return {round_trips * unloaded_rtt_ns(facts) * 1e-9 / 8};
}

inline constexpr ParamSpec kRateWindowSpec{
    "window_round_trips",
    "1",
    0,
    0,
    1000,
    true,
    "cap of bytes in flight: what the rate sends in so many unloaded round trips; 0 = none",
    "HR: 1 in dcqcn_vwin and timely_vwin"};

}  // namespace paceline::cc
