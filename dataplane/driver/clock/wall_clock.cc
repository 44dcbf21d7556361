#include "dataplane/driver/clock/wall_clock.h"

#include <chrono>
#include <thread>

namespace paceline {

namespace {

// Linux wakes a sleeper up to 50 us late on purpose (timer slack), and then it takes its time.
constexpr Picos kAwake = picos_from_micros(150);

}  // namespace

// A thread may have moved to a core whose counter lags by a few ticks.
Picos TscWallClock::now() { return last_ = later(last_, clock_.now()); }

void TscWallClock::wait(Picos until) {
  for (Picos at = now(); at < until; at = now()) {
    const Picos left = until - at;
    if (left > kAwake) {
      std::this_thread::sleep_for(std::chrono::nanoseconds((left - kAwake).count / 1000));
      continue;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace paceline
