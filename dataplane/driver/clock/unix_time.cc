#include "dataplane/driver/clock/unix_time.h"

#include <chrono>

namespace paceline {

std::uint64_t unix_nanos() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace paceline
