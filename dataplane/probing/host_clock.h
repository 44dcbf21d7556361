// What a host's clock shows, given the time that its engine is polled with. Clocks that are off are
// for tests of what compares them: nothing else uses this one.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::probing {

struct HostClock {
  Nanos at_zero{};             // what it shows at time 0
  std::int64_t drift_ppb = 0;  // how much faster than the engine's time it runs
  Picos set_at = kNever;       // when somebody sets it,
  Nanos set_by{};              // by so much

  Nanos at(Picos now) const {
    __extension__ using Wide = __int128;
    const std::int64_t elapsed = to_nanos(now).count;
    Nanos out{at_zero.count + elapsed +
              static_cast<std::int64_t>(Wide{elapsed} * drift_ppb / 1'000'000'000)};
    if (now >= set_at) out += set_by;
    return out;
  }
};

}  // namespace paceline::probing
