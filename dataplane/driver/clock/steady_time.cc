#include "dataplane/driver/clock/steady_time.h"

#include <chrono>

namespace paceline {

Nanos steady_time() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()};
}

}  // namespace paceline
