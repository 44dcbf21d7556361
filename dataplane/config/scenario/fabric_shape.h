// The size of a scenario's regular topology: how many nodes and links, at which rates. (How they
// are wired is in dataplane/fabric/topology/clos.h.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"

namespace paceline::config {

// Star: one leaf. Leaf-spine: one pod. Dumbbell: two leaves without spines.
struct FabricShape {
  std::uint32_t pods = 1;
  std::uint32_t leaves = 1;  // per pod
  std::uint32_t spines = 0;  // per pod
  std::uint32_t cores = 0;   // in all
  std::uint32_t hosts_per_leaf = 0;
  std::uint32_t links_per_pair = 1;

  std::uint64_t hosts() const { return std::uint64_t{pods} * leaves * hosts_per_leaf; }
  std::uint64_t switches() const { return std::uint64_t{pods} * (leaves + spines) + cores; }
};

// For any topology except "file".
FabricShape shape_of(const FabricConfig& fabric);

// Rates of the links between leaves and spines (or of the dumbbell's trunk) and between spines and
// cores, rounded down to b/s. `oversubscription` sets the topmost tier's: the switches below it
// have that many times more capacity from their hosts than to the tier.
Rate uplink_rate(const FabricConfig& fabric);
Rate core_rate(const FabricConfig& fabric);

// A link as people name it: "host3" (that host's), "leaf0-spine1", "spine4-core2", "leaf0-leaf1" (a
// dumbbell's trunk), with "#1", "#2" ... behind it for the further ones of parallel links. Nodes of
// a kind are numbered through all pods. Either end may stand first.
struct FoundLink {
  std::uint32_t index = 0;  // of the fabric's links: hosts' first, leaf-spine, spine-core
  std::string error;        // not empty: why there is no such link
};
FoundLink find_link(const FabricConfig& fabric, std::string_view name);

// The number behind '#' (0 without one), which is cut off; false when it is no number.
bool take_parallel_number(std::string_view& name, std::uint32_t& number);

}  // namespace paceline::config
