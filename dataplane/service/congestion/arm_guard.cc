#include "dataplane/service/congestion/arm_guard.h"

#include <algorithm>
#include <utility>

namespace paceline::service {

namespace {

std::uint64_t growth(std::uint64_t now, std::uint64_t before) {
  return now > before ? now - before : 0;
}

}  // namespace

std::optional<ArmGuard::Trip> ArmGuard::look(const GuardSample& nic,
                                             std::span<const telemetry::ClusterSample> clusters,
                                             const GuardLimits& limits) {
  const bool first = last_.size() != clusters.size();
  if (first) last_.resize(clusters.size());
  std::array<std::uint64_t, 2> stalled{};
  for (std::size_t c = 0; c < clusters.size(); ++c) {
    const telemetry::ClusterFigures& now = clusters[c].figures;
    const telemetry::ClusterFigures before = std::exchange(last_[c], now);
    if (first || now.arm > 1) continue;
    GuardSample& sums = arms_[now.arm].sums;
    const std::uint64_t again = growth(now.retransmitted_packets, before.retransmitted_packets);
    sums.data_packets += growth(now.tx_data_packets, before.tx_data_packets) + again;
    sums.retransmitted_packets += again;
    // Clusters of one arm stall at the same time: the longest counts.
    stalled[now.arm] = std::max(stalled[now.arm], growth(now.stalled_ns, before.stalled_ns));
  }
  std::optional<Trip> trip;
  for (std::uint8_t a = 0; a < 2; ++a) {
    Arm& arm = arms_[a];
    arm.sums.at_ns = nic.at_ns;
    arm.sums.stopped_ns = nic.stopped_ns;
    arm.sums.stalled_ns += stalled[a];
    if (first) {
      arm.judge.begin(arm.sums);
      continue;
    }
    const std::optional<GuardTrip> found = arm.judge.look(arm.sums, limits);
    // The candidate's where both broke one: it is what changed.
    if (found) trip = Trip{a, *found};
  }
  return trip;
}

}  // namespace paceline::service
