// Regular fabrics: hosts under leaves, leaves under the spines of their pod, spines under cores.
//
//   leaf-spine   one pod, no cores: every leaf linked to every spine
//   fat tree     pods of leaves and spines; spine j of every pod linked to the cores
//                j*n .. j*n + n-1, n = cores / spines (Al-Fares et al., "A scalable, commodity data
//                center network architecture", SIGCOMM 2008; there leaves are "edge", spines
//                "aggregation" switches)
//   rails        pods without cores: one pod a rail, and no path between them
//   planes       copies of any of these, and no path between them
//   dumbbell     two leaves, linked to each other
//   star         one leaf
//
// Numbering makes the next hop arithmetic, without a table. Host h is linked to leaf
// h / hosts_per_leaf. Switches are leaves, then spines (both pod by pod), then cores (plane by
// plane). Links are those of hosts, then leaf-spine, then spine-core. Pods are numbered through all
// planes.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::fabric {

struct FabricSpec;

// Counts of a regular fabric. `leaves == 0`: not regular, FabricSpec::links defines the fabric.
struct ClosShape {
  std::uint32_t pods = 1;    // per plane
  std::uint32_t leaves = 0;  // per pod
  std::uint32_t spines = 0;  // per pod; 0 with two leaves in all: a dumbbell
  std::uint32_t cores = 0;   // per plane, a multiple of spines; 0: pods do not reach each other
  std::uint32_t hosts_per_leaf = 0;
  std::uint32_t links_per_pair =
      1;  // parallel links of a leaf and a spine (dumbbell: of the leaves)
  std::uint32_t planes = 1;

  bool regular() const { return leaves != 0; }
  bool dumbbell() const { return spines == 0 && leaves == 2 && pods == 1 && planes == 1; }
  std::uint32_t all_pods() const { return planes * pods; }
  std::uint32_t all_leaves() const { return all_pods() * leaves; }
  std::uint32_t all_spines() const { return all_pods() * spines; }
  std::uint32_t all_cores() const { return planes * cores; }
  std::uint32_t hosts() const { return all_leaves() * hosts_per_leaf; }
  std::uint32_t switches() const { return all_leaves() + all_spines() + all_cores(); }
  std::uint32_t cores_per_spine() const { return spines == 0 ? 0 : cores / spines; }
  // Links between leaves and spines (or of the dumbbell's trunk), and between spines and cores.
  std::uint32_t leaf_links() const {
    return dumbbell() ? links_per_pair : all_leaves() * spines * links_per_pair;
  }
  std::uint32_t core_links() const { return all_spines() * cores_per_spine(); }
  friend bool operator==(const ClosShape&, const ClosShape&) = default;
};

struct ClosLinks {
  Rate host_rate{};
  Rate uplink_rate{};  // leaf-spine
  Rate core_rate{};    // spine-core
  Picos host_delay{};
  Picos uplink_delay{};  // leaf-spine and spine-core
};

// The fabric of that shape. shape.hosts() and shape.switches() must fit in 31 bits; cores must be a
// multiple of spines, 0 without spines.
FabricSpec clos(const ClosShape& shape, const ClosLinks& links);

// Divides by a fixed divisor with a multiplication and a shift. Exact while
// value * divisor < 2^40.
class Divider {
 public:
  explicit Divider(std::uint32_t divisor = 1)
      : magic_(((std::uint64_t{1} << 40) + divisor - 1) / divisor) {}
  std::uint32_t operator()(std::uint32_t value) const {
    return static_cast<std::uint32_t>((value * magic_) >> 40);
  }

 private:
  std::uint64_t magic_;
};

// The candidates for a packet's next hop: `count` directed links, first, first + 2, ...
struct NextHop {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// Next hops of a regular fabric by arithmetic on its numbering. A host that cannot be reached has
// no next hop at the switch of the last tier at the latest; below it a packet may go up in vain.
class ClosRouter {
 public:
  ClosRouter() = default;
  explicit ClosRouter(const ClosShape& shape);

  NextHop next(std::uint32_t switch_index, std::uint32_t host) const {
    const std::uint32_t leaf = by_hosts_per_leaf_(host);
    if (switch_index < leaves_) {
      if (leaf == switch_index) return {2 * host + 1, 1};
      // A dumbbell; in any other fabric without spines links_per_pair_ is 0.
      if (spines_per_pod_ == 0) return {2 * hosts_ + switch_index, links_per_pair_};
      return {2 * (hosts_ + switch_index * up_per_leaf_), up_per_leaf_};
    }
    const std::uint32_t pod = by_leaves_(leaf);
    const std::uint32_t at = switch_index - leaves_;
    if (at < spines_) {
      const std::uint32_t own_pod = by_spines_(at);
      if (pod == own_pod) {
        const std::uint32_t spine = at - own_pod * spines_per_pod_;
        return {2 * (hosts_ + leaf * up_per_leaf_ + spine * links_per_pair_) + 1, links_per_pair_};
      }
      return {2 * (first_core_link_ + at * up_per_spine_), up_per_spine_};
    }
    // A pod has as many links to the cores of its plane as the plane has cores, in their order.
    const std::uint32_t core = at - spines_ - by_pods_(pod) * cores_;
    return {2 * (first_core_link_ + pod * cores_ + core) + 1, core < cores_ ? 1U : 0U};
  }

 private:
  std::uint32_t hosts_ = 0;
  std::uint32_t leaves_ = 0;  // all
  std::uint32_t spines_ = 0;
  std::uint32_t spines_per_pod_ = 0;
  std::uint32_t cores_ = 0;  // per plane
  std::uint32_t links_per_pair_ = 1;
  std::uint32_t up_per_leaf_ = 0;
  std::uint32_t up_per_spine_ = 0;
  std::uint32_t first_core_link_ = 0;
  Divider by_hosts_per_leaf_;
  Divider by_leaves_;
  Divider by_spines_;
  Divider by_pods_;
};

}  // namespace paceline::fabric
