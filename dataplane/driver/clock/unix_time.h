// The time of day, for display and for files. No decision depends on it.
#pragma once

#include <cstdint>

namespace paceline {

// Nanoseconds since 1970, UTC.
std::uint64_t unix_nanos();

}  // namespace paceline
