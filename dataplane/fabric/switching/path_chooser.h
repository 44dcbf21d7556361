// Chooses which of several links a switch sends a packet by.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/topology.h"

namespace paceline::fabric {

class PathChooser {
 public:
  explicit PathChooser(const FabricSpec& spec) : load_balance_(spec.load_balance) {
    constexpr std::uint64_t kSprayStream = 0xFAB4'0000'0000'0000;  // of the run's seed
    if (load_balance_ == LoadBalance::spray) {
      // Groups begin at different members: switches that began in step would stay in step.
      turns_.resize(2 * spec.links.size());
      for (std::uint32_t id = 0; id < turns_.size(); ++id) {
        turns_[id] = static_cast<std::uint32_t>(mix64(spec.seed ^ (kSprayStream + id)) & 0xFFFF);
      }
    }
    draws_.resize(spec.switches);
    for (std::uint32_t i = 0; i < spec.switches; ++i) {
      draws_[i] = mix64(spec.seed ^ (kSprayStream + i));
    }
  }

  // For a hop with several candidates. Sprayed packets are counted and drawn per switch in the
  // order of arrival there, which is that of (time, link).
  std::uint32_t choose(const Topology& topology, std::uint32_t switch_index, NextHop hop,
                       std::uint32_t entropy) {
    if (load_balance_ == LoadBalance::ecmp) [[likely]]
      return topology.hashed(switch_index, hop, entropy);
    if (load_balance_ == LoadBalance::spray) {
      std::uint32_t& turn = turns_[topology.first_link(hop)];
      return topology.member(hop, turn++ % hop.count);
    }
    const std::uint64_t draw = splitmix64(draws_[switch_index]) >> 32;
    return topology.member(hop, static_cast<std::uint32_t>((draw * hop.count) >> 32));
  }

 private:
  LoadBalance load_balance_;
  std::vector<std::uint32_t> turns_;  // LoadBalance::spray: by first link of a group
  std::vector<std::uint64_t> draws_;  // LoadBalance::spray_random: by switch
};

}  // namespace paceline::fabric
