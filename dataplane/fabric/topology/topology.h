// Where a packet goes next. Shortest paths by hop count: computed where the fabric is regular
// (clos.h), else found by breadth-first search from every switch that has hosts, into tables by
// destination switch, never by host. Among equally short paths a hash of the packet's entropy and
// the switch chooses, so a flow keeps its path, and switches choose independently of one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/fabric/topology/clos.h"
#include "dataplane/fabric/topology/fabric_spec.h"

namespace paceline::fabric {

// A spec with `hosts` hosts on one switch, all links alike.
FabricSpec star(std::uint32_t hosts, Rate rate, Picos delay);

class Topology {
 public:
  static constexpr std::uint32_t kNoLink = 0xFFFF'FFFF;

  // The node numbers and links of `spec` must be in range and every host must have one link. Other
  // errors of check() are allowed (unreachable pairs stay unreachable).
  explicit Topology(const FabricSpec& spec);

  // The directed links by which a packet for `host` may leave `switch_index` (0-based among
  // switches): member(hop, 0 .. count-1). count 0: there is no path.
  NextHop next_hop(std::uint32_t switch_index, std::uint32_t host) const {
    if (computed_) [[likely]]
      return router_.next(switch_index, host);
    const HostPlace& place = hosts_[host];
    if (place.switch_index == switch_index) return {place.downlink, 1};
    if (place.edge == kNoLink) return {};
    const Group group = groups_[table_[std::size_t{place.edge} * switches_ + switch_index]];
    if (group.count <= 1) return {group.count == 0 ? kNoLink : members_[group.first], group.count};
    return {group.first, group.count};
  }
  // For a hop with several candidates; with one candidate it is `first`.
  std::uint32_t member(NextHop hop, std::uint32_t i) const {
    return computed_ ? hop.first + 2 * i : members_[hop.first + i];
  }

  // The first of its candidates, whatever their number: names the group (count not 0).
  std::uint32_t first_link(NextHop hop) const {
    return hop.count == 1 ? hop.first : member(hop, 0);
  }

  // The candidate that the hash picks, for a hop with several. The switch is the salt of the hash:
  // flows that one switch puts on the same link are spread by the next switch.
  std::uint32_t hashed(std::uint32_t switch_index, NextHop hop, std::uint32_t entropy) const {
    const std::uint64_t mix = mix64(std::uint64_t{entropy} << 32 | (switch_index + 1)) >> 32;
    return member(hop, static_cast<std::uint32_t>((mix * hop.count) >> 32));
  }

  // The link that the hash picks; kNoLink when there is no path.
  std::uint32_t next_link(std::uint32_t switch_index, std::uint32_t host,
                          std::uint32_t entropy) const {
    const NextHop hop = next_hop(switch_index, host);
    if (hop.count == 1) return hop.first;
    if (hop.count == 0) [[unlikely]]
      return kNoLink;
    return hashed(switch_index, hop, entropy);
  }

  // Computes next hops again without the links (index into spec.links) that are down. Links of
  // hosts stay: packets to a host whose link is down are lost there.
  void reroute(const FabricSpec& spec, const std::vector<bool>& down);

  bool reachable(std::uint32_t from_host, std::uint32_t to_host) const;
  // Directed links a packet of this entropy takes between two hosts; empty when there is no path.
  std::vector<std::uint32_t> path(std::uint32_t from_host, std::uint32_t to_host,
                                  std::uint32_t entropy = 0) const;

  // The switch at the far end of a directed link; kNoLink: a host.
  std::uint32_t far_switch(std::uint32_t link) const { return far_switch_[link]; }
  // The switch to which a host is linked; kNoLink: it is linked to another host.
  std::uint32_t switch_of(std::uint32_t host) const { return hosts_[host].switch_index; }
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

  void build_tables(const FabricSpec& spec, const std::vector<bool>& down);

  bool computed_ = false;
  ClosRouter router_;
  std::uint32_t switches_;
  std::vector<HostPlace> hosts_;
  std::vector<std::uint32_t> table_;       // [edge][switch] -> group
  std::vector<std::uint32_t> far_switch_;  // directed link -> switch index at its end, or kNoLink
  std::vector<Group> groups_;
  std::vector<std::uint32_t> members_;
};

}  // namespace paceline::fabric
