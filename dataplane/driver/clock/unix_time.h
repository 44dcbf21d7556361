// The time of day, for what people and files are told. Nothing is decided by it.
#pragma once

#include <cstdint>

namespace paceline {

// Nanoseconds since 1970, UTC.
std::uint64_t unix_nanos();

}  // namespace paceline
