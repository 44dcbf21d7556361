// Where a packet goes next. Shortest paths by hop count, found by breadth-first search from every
// switch that has hosts; among equally short ones a hash of the packet's entropy and the switch
// chooses, so a flow keeps its path. Tables are by destination switch, never by host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/base/random.h"
#include "dataplane/fabric/fabric_spec.h"

namespace paceline::fabric {

// A spec with `hosts` hosts on one switch, all links alike.
FabricSpec star(std::uint32_t hosts, Rate rate, Picos delay);

class Topology {
 public:
  static constexpr std::uint32_t kNoLink = 0xFFFF'FFFF;

  // The node numbers and links of `spec` must be in range and every host must have one link; what
  // else check() reports may be wrong (unreachable pairs stay unreachable).
  explicit Topology(const FabricSpec& spec);

  // Directed link on which a packet for `host` leaves `switch_index` (0-based among switches);
  // kNoLink when there is no path.
  std::uint32_t next_link(std::uint32_t switch_index, std::uint32_t host,
                          std::uint32_t entropy) const {
    const HostPlace& place = hosts_[host];
    if (place.switch_index == switch_index) return place.downlink;
    return next_link_remote(switch_index, place, entropy);
  }

  bool reachable(std::uint32_t from_host, std::uint32_t to_host) const;
  // Directed links a packet of this entropy takes between two hosts; empty when there is no path.
  std::vector<std::uint32_t> path(std::uint32_t from_host, std::uint32_t to_host,
                                  std::uint32_t entropy = 0) const;

  std::uint32_t host_uplink(std::uint32_t host) const { return hosts_[host].downlink ^ 1U; }
  std::uint32_t host_downlink(std::uint32_t host) const { return hosts_[host].downlink; }

 private:
  struct HostPlace {
    std::uint32_t switch_index = kNoLink;  // kNoLink: linked to another host directly
    std::uint32_t downlink = kNoLink;      // directed link towards the host
    std::uint32_t edge = kNoLink;          // rank of the switch among switches with hosts
  };
  struct Group {
    std::uint32_t first = 0;  // in members_
    std::uint32_t count = 0;
  };

  std::uint32_t next_link_remote(std::uint32_t switch_index, const HostPlace& place,
                                 std::uint32_t entropy) const {
    if (place.edge == kNoLink) return kNoLink;
    const Group group = groups_[table_[std::size_t{place.edge} * switches_ + switch_index]];
    if (group.count <= 1) return group.count == 0 ? kNoLink : members_[group.first];
    const std::uint64_t mix = mix64(std::uint64_t{entropy} << 32 | (switch_index + 1)) >> 32;
    return members_[group.first + static_cast<std::uint32_t>((mix * group.count) >> 32)];
  }

  std::uint32_t switches_;
  std::vector<HostPlace> hosts_;
  std::vector<std::uint32_t> table_;       // [edge][switch] -> group
  std::vector<std::uint32_t> far_switch_;  // directed link -> switch index at its end, or kNoLink
  std::vector<Group> groups_;
  std::vector<std::uint32_t> members_;
};

}  // namespace paceline::fabric
