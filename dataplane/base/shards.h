// Several engines, the shards, make up one NIC instance. Which of them something belongs to is in
// the lowest bits of its number: of queue pairs, and of the channels of the control messages.
#pragma once

#include <cstdint>

namespace paceline {

// An instance has 1, 2, 4 or 8 shards.
inline constexpr std::uint32_t kMaxShardBits = 3;
inline constexpr std::uint32_t kMaxShards = 1U << kMaxShardBits;

constexpr std::uint32_t shard_of_number(std::uint32_t number, std::uint32_t shard_bits) {
  return number & ((1U << shard_bits) - 1U);
}

}  // namespace paceline
