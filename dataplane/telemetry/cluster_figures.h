// What a NIC counts by the cluster of the port that data goes to, while an experiment assigns arms
// to clusters of receivers: beside the figures of the whole NIC, not instead of them. A cluster
// stays what it is while its arm changes, so that the figures of any span of time are a difference
// of two looks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace paceline::telemetry {

inline constexpr std::size_t kMostClusters = 16;
// Of peers that no cluster has: they get the champion, and are counted for the NIC alone.
inline constexpr std::uint8_t kNoCluster = 0xFF;

// Towards the ports of one cluster. Sums since the start of the service, except for `arm`, `epoch`
// and `queue_pairs`.
struct ClusterFigures {
  std::uint32_t arm = 0;                    // in force for them: 0 is the champion
  std::uint32_t queue_pairs = 0;            // that lead there
  std::uint64_t tx_data_packets = 0;        // data, first transmissions
  std::uint64_t retransmitted_packets = 0;  // data
  std::uint64_t stalled_ns = 0;             // messages under way, and nothing of them moved
};
static_assert(std::is_trivially_copyable_v<ClusterFigures> && sizeof(ClusterFigures) % 8 == 0);

}  // namespace paceline::telemetry
