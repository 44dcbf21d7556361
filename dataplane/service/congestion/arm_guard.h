// The guard of a NIC that has two arms at a time. The counts by the cluster of the destination port
// are summed up by the arm of that cluster, and judged for each arm alone. Pauses of the NIC's link
// and drops at the port towards it belong to the NIC, and are judged there. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/service/congestion/guard_judge.h"
#include "dataplane/telemetry/segment_reader.h"

namespace paceline::service {

class ArmGuard {
 public:
  struct Trip {
    std::uint8_t arm = 0;
    GuardTrip trip;
  };

  // Other arms are in force: earlier counts are not evidence against them.
  void forget() { last_.clear(); }
  // `nic`: the whole NIC's counts at the same time. The first look after forget() is only a
  // baseline.
  std::optional<Trip> look(const GuardSample& nic,
                           std::span<const telemetry::ClusterSample> clusters,
                           const GuardLimits& limits);
  // The only arm with a strike: it is the likely cause of what the whole NIC did.
  std::optional<std::uint8_t> suspect() const {
    if (arms_[0].judge.calm() == arms_[1].judge.calm()) return std::nullopt;
    return arms_[0].judge.calm() ? std::uint8_t{1} : std::uint8_t{0};
  }
  // Neither arm has a strike.
  bool calm() const { return arms_[0].judge.calm() && arms_[1].judge.calm(); }

 private:
  struct Arm {
    GuardJudge judge;
    GuardSample sums;
  };
  std::array<Arm, 2> arms_;
  std::vector<telemetry::ClusterFigures> last_;  // by cluster
};

}  // namespace paceline::service
