// What a host's clock shows, given the time that its engine is polled with. Wrong clocks are
// faults, and serve to test the comparison of clocks.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline::probing {

// In times of the engine: a clock is set, or drifts.
struct ClockChange {
  Picos at{0};
  Nanos set_by{};
  std::int64_t drift_ppb = 0;
  Picos steady_at = kNever;  // it runs away no further
  Picos right_at = kNever;   // it is set right again
};

struct HostClock {
  Nanos at_zero{};                     // what it shows at time 0
  std::int64_t drift_ppb = 0;          // how much faster than the engine's time it runs
  Picos set_at = kNever;               // when it is set,
  Nanos set_by{};                      // by so much
  std::vector<ClockChange> changes{};  // beyond that

  Nanos at(Picos now) const {
    Nanos out = at_zero + to_nanos(now) + run_away(now, drift_ppb);
    if (now >= set_at) out += set_by;
    for (const ClockChange& one : changes) {
      if (now < one.at || now >= one.right_at) continue;
      out += one.set_by + run_away(earlier(now, one.steady_at) - one.at, one.drift_ppb);
    }
    return out;
  }

 private:
  static Nanos run_away(Picos time, std::int64_t drift_ppb) {
    __extension__ using Wide = __int128;
    return Nanos{static_cast<std::int64_t>(Wide{to_nanos(time).count} * drift_ppb / 1'000'000'000)};
  }
};

}  // namespace paceline::probing
