// A fabric divided into parts that several threads work on at the same time. A node (host or
// switch) belongs to one part, and so does what it sends: a directed link belongs to the part of
// the node that it leaves. Hosts stay with their switch.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/fabric/topology/fabric_spec.h"

namespace paceline::fabric {

struct Division {
  std::uint32_t parts = 1;
  std::vector<std::uint32_t> part_of_node;  // hosts, then switches
  // The shortest time after which one part can affect another, whatever a link event changes.
  // kNever with one part.
  Picos lookahead = kNever;

  std::uint32_t part_from(const FabricSpec& spec, std::uint32_t link) const {
    const LinkSpec& of = spec.links[link / 2];
    return part_of_node[(link & 1U) == 0 ? of.a : of.b];
  }
  std::uint32_t part_to(const FabricSpec& spec, std::uint32_t link) const {
    return part_from(spec, link ^ 1U);
  }
  bool crosses(const FabricSpec& spec, std::uint32_t link) const {
    return part_from(spec, link) != part_to(spec, link);
  }
};

// At most `parts` parts: never more than there are switches with hosts. Switches with hosts are
// dealt out in the order of their numbers, so that pods stay whole where they can; each further
// switch goes where most of its links lead, to the smallest such part. The same for the same spec.
Division divide(const FabricSpec& spec, std::uint32_t parts);

// The shortest propagation delay that a link ever has.
Picos shortest_delay(const FabricSpec& spec, std::uint32_t link);

}  // namespace paceline::fabric
