// The congestion control of an engine: the algorithms with their values, for one arm or for two at
// a time (arms.h), and the current arm, epoch and generation.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "dataplane/transport/congestion/arms.h"
#include "dataplane/transport/congestion/plugin_watch.h"
#include "dataplane/transport/core/cc_setup.h"
#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class CongestionSetups {
 public:
  // Installs EngineConfig::primary and fallback.
  CongestionSetups(EngineCore& core, PluginWatch& watch);

  static bool is_proactive(cc::AlgorithmId id);
  // All queue pairs to a peer and class share one context: a channel.
  static bool has_channels(cc::AlgorithmId id);

  // Why this engine cannot change to the setup; empty: it can.
  std::string refusal(const CcSetup& setup) const;
  std::string refusal(const ArmsByPeer& arms) const;

  // The setups that install() has replaced.
  struct Before {
    bool proactive = false;
    bool grants = false;
    cc::AlgorithmId receiving{};
    cc::AlgorithmId governing{};
  };
  // Puts values in force, and gives peers their arm. Requires a setup that is not refused. All
  // contexts get `arm` and `epoch`. Allocates.
  Before install(const CcSetup& setup, std::uint8_t arm, std::uint8_t epoch);
  // With two arms at a time each context has the arm of its peer.
  Before install(const ArmsByPeer& arms, std::uint8_t epoch);

  // The only setup; of two, that of this port's own cluster.
  const CcSetup& own() const { return on(own_arm_); }
  const CcSetup& on(std::uint8_t setup_slot) const {
    return setup_slot != 0 && second_ != nullptr ? second_->setup : setup_;
  }
  // The arm whose algorithm divides the uplink.
  std::uint8_t governing_arm() const;
  // At least one arm is proactive: contexts may be channels.
  bool proactive() const { return proactive_; }
  // The port's own arm is proactive: the port grants.
  bool grants() const { return grants_; }
  // The setup for the context of this peer's traffic.
  cc::AlgorithmId algorithm_for(const Peer& peer) const {
    const CcSetup& setup = on(peer.setup_slot);
    return proactive_ && peer.status != PeerStatus::paceline &&
                   is_proactive(setup.primary.algorithm)
               ? setup.fallback.algorithm
               : setup.primary.algorithm;
  }
  // Gives the peer its cluster and setup.
  void place(Peer& peer) const;

  // 1 at the start, then one more with each install().
  std::uint64_t generation() const { return generation_; }
  std::uint8_t epoch() const { return epoch_; }
  // The arm of an experiment that telemetry and REQUESTs name for a setup.
  std::uint8_t number_of(std::uint8_t setup_slot) const {
    return second_ != nullptr && second_->in_force ? setup_slot : arm_;
  }

 private:
  // For two setups at a time; exists from the first such setup on.
  struct SecondArm {
    CcSetup setup;
    ClusterTable clusters;
    std::array<std::uint8_t, telemetry::kMostClusters> arm_of{};
    bool in_force = false;
  };

  Before before() const;
  void begin_generation();
  void take_values(const CcSetup& setup, ParamTable& into);

  EngineCore& core_;
  PluginWatch& watch_;
  CcSetup setup_;  // the only one, or that of arm 0
  std::unique_ptr<SecondArm> second_;
  std::uint64_t generation_ = 1;
  bool proactive_ = false;
  bool grants_ = false;
  std::uint8_t own_arm_ = 0;
  std::uint8_t arm_ = 0;    // of contexts, from the first change on
  std::uint8_t epoch_ = 0;  // likewise
};

}  // namespace paceline::transport
