// Two arms in one engine at a time: the peer that the data goes to decides which arm a congestion
// context has. For experiments that randomise the receivers' ports. Any other engine has one setup,
// and nothing here costs anything.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/telemetry/cluster_figures.h"
#include "dataplane/transport/core/cc_setup.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::transport {

// Arms are numbered as in telemetry: 0 is the champion.
struct ArmsByPeer {
  struct Place {
    wire::IpAddress peer{};
    std::uint8_t cluster = 0;  // below telemetry::kMostClusters
  };

  std::array<CcSetup, 2> setups;
  std::array<std::uint8_t, telemetry::kMostClusters> arm_of{};  // 0 or 1, by cluster
  // Every address once, in any order. Peers that are not here have arm 0 and no cluster.
  std::vector<Place> places;
  // The cluster of this port. The receiving half of the port uses that cluster's arm when it
  // grants. kNoCluster: arm 0.
  std::uint8_t own_cluster = telemetry::kNoCluster;

  std::uint8_t arm_of_cluster(std::uint8_t cluster) const {
    return cluster < arm_of.size() ? arm_of[cluster] : std::uint8_t{0};
  }
  std::uint8_t own_arm() const { return arm_of_cluster(own_cluster); }
};

// The places of an ArmsByPeer, for lookups.
class ClusterTable {
 public:
  void set(std::vector<ArmsByPeer::Place> places) {
    places_ = std::move(places);
    std::sort(places_.begin(), places_.end(), before);
  }
  void clear() { places_.clear(); }
  std::uint8_t find(const wire::IpAddress& peer) const {
    const ArmsByPeer::Place wanted{peer, 0};
    const auto at = std::lower_bound(places_.begin(), places_.end(), wanted, before);
    return at == places_.end() || !(at->peer == peer) ? telemetry::kNoCluster : at->cluster;
  }

 private:
  static bool before(const ArmsByPeer::Place& a, const ArmsByPeer::Place& b) {
    return a.peer < b.peer;
  }

  std::vector<ArmsByPeer::Place> places_;
};

}  // namespace paceline::transport
