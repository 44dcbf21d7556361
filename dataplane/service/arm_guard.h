// The guard of a NIC that has two arms at a time: what it counts by the cluster of the port that
// data goes to, summed up by the arm that the cluster has, and judged for each arm alone. Pauses of
// the NIC's link and drops at the port towards it are of the NIC, and judged there. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/service/guard_judge.h"
#include "dataplane/telemetry/segment_reader.h"

namespace paceline::service {

class ArmGuard {
 public:
  struct Trip {
    std::uint8_t arm = 0;
    GuardTrip trip;
  };

  // Other arms are in force: what was before is no evidence against them.
  void forget() { last_.clear(); }
  // `nic`: of the whole NIC at the same time. The first look after forget() is only a beginning.
  std::optional<Trip> look(const GuardSample& nic,
                           std::span<const telemetry::ClusterSample> clusters,
                           const GuardLimits& limits);

 private:
  struct Arm {
    GuardJudge judge;
    GuardSample sums;
  };
  std::array<Arm, 2> arms_;
  std::vector<telemetry::ClusterFigures> last_;  // by cluster
};

}  // namespace paceline::service
