// Figures of a NIC by the cluster of the destination port, while an experiment assigns arms to
// clusters of receivers. They are kept in addition to the figures of the whole NIC. Clusters do not
// change when their arms do, so the figures of any span of time are the difference of two samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace paceline::telemetry {

inline constexpr std::size_t kMostClusters = 16;
// For peers outside all clusters: they get the champion, and count for the whole NIC only.
inline constexpr std::uint8_t kNoCluster = 0xFF;

// Towards the ports of one cluster. Sums since the start of the service, except for `arm`, `epoch`
// and `queue_pairs`.
struct ClusterFigures {
  std::uint32_t arm = 0;                    // in force for them: 0 is the champion
  std::uint32_t queue_pairs = 0;            // that lead there
  std::uint64_t tx_data_packets = 0;        // data, first transmissions
  std::uint64_t retransmitted_packets = 0;  // data
  std::uint64_t stalled_ns = 0;             // time with messages in flight and no progress of any
};
static_assert(std::is_trivially_copyable_v<ClusterFigures> && sizeof(ClusterFigures) % 8 == 0);

}  // namespace paceline::telemetry
