// Which connections the messages of a plan use. Both ends give a connection the same number.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/collective/rank/peer_traffic.h"
#include "tools/collective/rank/plan/plan_part.h"

namespace paceline::rank {

// Messages of a connection that are posted and not acknowledged.
inline constexpr std::uint32_t kMostUnderWay = 64;
// Connections to a peer for messages of kPooledLane, each with one message at a time.
inline constexpr std::uint32_t kPoolSize = 4;

// `slot`: within a pool, else 0.
constexpr std::uint64_t plan_channel(std::uint32_t from, std::uint32_t to, std::uint32_t lane,
                                     std::uint32_t slot) {
  return std::uint64_t{from < to} << 40 | std::uint64_t{slot} << 32 | lane;
}

// The traffic of every connection of `rank`.
std::vector<PeerTraffic> plan_traffic(const PlanPart& part, std::uint32_t rank);

}  // namespace paceline::rank
