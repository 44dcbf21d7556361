// The size of a scenario's regular topology: how many nodes and links, at which rates. (How they
// are wired is in dataplane/fabric/topology/clos.h.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"

namespace paceline::config {

// Star: one leaf. Leaf-spine: one pod. Rail: a pod for each rail. Dumbbell: two leaves without
// spines.
struct FabricShape {
  std::uint32_t pods = 1;    // per plane
  std::uint32_t leaves = 1;  // per pod
  std::uint32_t spines = 0;  // per pod
  std::uint32_t cores = 0;   // per plane
  std::uint32_t hosts_per_leaf = 0;
  std::uint32_t links_per_pair = 1;
  std::uint32_t planes = 1;  // fabrics of that size, without a link between them

  // Ends of one link each: what the fabric calls hosts.
  std::uint64_t endpoints() const { return std::uint64_t{planes} * pods * leaves * hosts_per_leaf; }
  std::uint64_t switches() const {
    return planes * (std::uint64_t{pods} * (std::uint64_t{leaves} + spines) + cores);
  }

  bool dumbbell() const { return spines == 0 && leaves == 2 && pods == 1 && planes == 1; }
  std::uint32_t all_leaves() const { return planes * pods * leaves; }
  std::uint32_t all_spines() const { return planes * pods * spines; }
  std::uint32_t all_cores() const { return planes * cores; }
  std::uint32_t cores_per_spine() const { return spines == 0 ? 0 : cores / spines; }
  // The first of the cores that a spine is linked to.
  std::uint32_t first_core(std::uint32_t spine) const {
    return spine / (pods * spines) * cores + spine % spines * cores_per_spine();
  }

  // Links in their order: those of hosts, with the hosts' numbers; those of leaf 0 to its spines
  // (or a dumbbell's trunk), of leaf 1, ...; those of spine 0 to its cores, of spine 1, ...
  // Switches are numbered through all pods and planes, `place` is counted within these.
  std::uint32_t leaf_link(std::uint32_t leaf, std::uint32_t place) const {  // the first of the pair
    return static_cast<std::uint32_t>(endpoints()) + (leaf * spines + place) * links_per_pair;
  }
  std::uint32_t core_link(std::uint32_t spine, std::uint32_t place) const {
    return leaf_link(all_leaves(), 0) + (dumbbell() ? links_per_pair : 0) +
           spine * cores_per_spine() + place;
  }
  std::uint32_t links() const { return core_link(all_spines(), 0); }
};

// For any topology except "file".
FabricShape shape_of(const FabricConfig& fabric);

// The prefix length of `subnet`, 8 to 30, or nothing: it is no IPv4 network "a.b.c.d/n".
std::optional<unsigned> subnet_prefix(const FabricConfig& fabric);

// Rates of the links between leaves and spines (or of the dumbbell's trunk) and between spines and
// cores, rounded down to b/s. `oversubscription` sets the topmost tier's: the switches below it
// have that many times more capacity from their hosts than to the tier.
Rate uplink_rate(const FabricConfig& fabric);
Rate core_rate(const FabricConfig& fabric);

// The names of an end: "host3", with port 1 "host3.p1".
std::string endpoint_name(const FabricConfig& fabric, std::uint32_t endpoint);

// A link as people name it: "host3" (that host's), "host3.p1" (of its port 1; without, of port 0),
// "server2.nic1" and "server2.nic1.p1" (likewise), "leaf0-spine1", "spine4-core2", "leaf0-leaf1" (a
// dumbbell's trunk), with "#1", "#2" ... behind it for the further ones of parallel links. Switches
// of a kind are numbered through all pods and planes. Either end may stand first.
struct FoundLink {
  std::uint32_t index = 0;  // of the fabric's links: hosts' first, leaf-spine, spine-core
  std::string error;        // not empty: why there is no such link
};
FoundLink find_link(const FabricConfig& fabric, std::string_view name);

// Decimal digits and nothing else, as a number of 32 bits.
std::optional<std::uint32_t> whole_number(std::string_view text);

// The number behind '#' (0 without one), which is cut off; false when it is not a number.
bool take_parallel_number(std::string_view& name, std::uint32_t& number);

}  // namespace paceline::config
