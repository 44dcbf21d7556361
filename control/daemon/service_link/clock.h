// The two clocks of the daemon, read in main() and nowhere else; tests bring their own.
#pragma once

#include <cstdint>
#include <functional>

namespace paceline::daemon {

struct Clock {
  std::function<std::int64_t()> monotonic_ns;  // CLOCK_MONOTONIC: spans
  std::function<std::int64_t()> unix_ns;       // for people, and for what outlives the daemon
};

}  // namespace paceline::daemon
