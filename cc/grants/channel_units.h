// Units of receiver-driven algorithms on a channel: Mb/s, nanoseconds, bytes, and the 16-bit
// sequence numbers of their messages.
#pragma once

#include <cstdint>

namespace paceline::cc {

// "No limit" in RequestMessage::tx_cap_mbps.
inline constexpr std::uint32_t kCapUnlimited = 0xFFFF'FFFF;

// Rate x time, rounded down; 0 for a span that is not positive.
constexpr std::uint64_t bytes_at(std::uint64_t mbps, std::int64_t ns) {
  return ns <= 0 ? 0 : mbps * static_cast<std::uint64_t>(ns) / 8000;
}

// Whole microseconds, modulo 2^32: time stamps, of which only differences are used.
constexpr std::uint32_t micros(std::int64_t ns) { return static_cast<std::uint32_t>(ns / 1000); }

// a - b of two 16-bit sequence numbers that are less than 2^15 apart.
constexpr std::int32_t seq_distance(std::uint16_t a, std::uint16_t b) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(a - b));
}

}  // namespace paceline::cc
