#include "dataplane/fabric/topology/topology.h"

#include <algorithm>
#include <map>
#include <utility>

namespace paceline::fabric {

FabricSpec star(std::uint32_t hosts, Rate rate, Picos delay) {
  return clos({.leaves = 1, .hosts_per_leaf = hosts}, {.host_rate = rate, .host_delay = delay});
}

Topology::Topology(const FabricSpec& spec) : switches_(spec.switches), hosts_(spec.hosts) {
  far_switch_.assign(2 * spec.links.size(), kNoLink);
  for (std::uint32_t i = 0; i < spec.links.size(); ++i) {
    const std::uint32_t ends[2] = {spec.links[i].a, spec.links[i].b};
    for (std::uint32_t side = 0; side < 2; ++side) {
      const std::uint32_t from = ends[side];
      const std::uint32_t to = ends[1 - side];
      const std::uint32_t link = 2 * i + side;
      if (to < spec.hosts) {
        hosts_[to].downlink = link;
        if (from >= spec.hosts) hosts_[to].switch_index = from - spec.hosts;
      } else {
        far_switch_[link] = to - spec.hosts;
      }
    }
  }
  computed_ = spec.shape.regular();
  if (computed_) {
    router_ = ClosRouter(spec.shape);
  } else {
    build_tables(spec, {});
  }
}

void Topology::reroute(const FabricSpec& spec, const std::vector<bool>& down) {
  computed_ = spec.shape.regular() && std::find(down.begin(), down.end(), true) == down.end();
  if (!computed_) build_tables(spec, down);
}

void Topology::build_tables(const FabricSpec& spec, const std::vector<bool>& down) {
  // The directed links that leave each switch, in the order of their numbers.
  std::vector<std::vector<std::uint32_t>> leaving(switches_);
  for (std::uint32_t link = 0; link < far_switch_.size(); ++link) {
    if (!down.empty() && down[link / 2]) continue;
    const LinkSpec& of = spec.links[link / 2];
    const std::uint32_t from = (link & 1U) == 0 ? of.a : of.b;
    if (far_switch_[link] != kNoLink && from >= spec.hosts) {
      leaving[from - spec.hosts].push_back(link);
    }
  }

  // Numbers of the switches that have hosts, among these switches.
  std::vector<std::uint32_t> edge_of(switches_, kNoLink);
  std::vector<std::uint32_t> edges;
  for (HostPlace& place : hosts_) {
    if (place.switch_index == kNoLink) continue;
    std::uint32_t& edge = edge_of[place.switch_index];
    if (edge == kNoLink) {
      edge = static_cast<std::uint32_t>(edges.size());
      edges.push_back(place.switch_index);
    }
    place.edge = edge;
  }

  members_.clear();
  groups_.assign(1, {});  // group 0: no way
  table_.assign(edges.size() * switches_, 0);
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  std::vector<std::uint32_t> distance(switches_);
  std::vector<std::uint32_t> queue;
  std::vector<std::uint32_t> members;
  for (std::uint32_t edge = 0; edge < edges.size(); ++edge) {
    distance.assign(switches_, kNoLink);
    queue.assign(1, edges[edge]);
    distance[edges[edge]] = 0;
    for (std::size_t head = 0; head < queue.size(); ++head) {
      const std::uint32_t at = queue[head];
      for (const std::uint32_t link : leaving[at]) {
        const std::uint32_t to = far_switch_[link];
        if (distance[to] != kNoLink) continue;
        distance[to] = distance[at] + 1;
        queue.push_back(to);
      }
    }
    for (const std::uint32_t at : queue) {
      if (distance[at] == 0) continue;
      members.clear();
      for (const std::uint32_t link : leaving[at]) {
        if (distance[far_switch_[link]] + 1 == distance[at]) members.push_back(link);
      }
      const auto [it, fresh] =
          known.try_emplace(members, static_cast<std::uint32_t>(groups_.size()));
      if (fresh) {
        groups_.push_back({static_cast<std::uint32_t>(members_.size()),
                           static_cast<std::uint32_t>(members.size())});
        members_.insert(members_.end(), members.begin(), members.end());
      }
      table_[std::size_t{edge} * switches_ + at] = it->second;
    }
  }
}

bool Topology::reachable(std::uint32_t from_host, std::uint32_t to_host) const {
  return from_host != to_host && !path(from_host, to_host).empty();
}

std::vector<std::uint32_t> Topology::path(std::uint32_t from_host, std::uint32_t to_host,
                                          std::uint32_t entropy) const {
  std::vector<std::uint32_t> links;
  if (from_host == to_host) return links;
  std::uint32_t link = host_uplink(from_host);
  links.push_back(link);
  if (far_switch_[link] == kNoLink) {  // two hosts back to back
    if (hosts_[to_host].downlink != link) links.clear();
    return links;
  }
  while (hosts_[to_host].downlink != link) {
    link = next_link(far_switch_[link], to_host, entropy);
    if (link == kNoLink) return {};
    links.push_back(link);
  }
  return links;
}

}  // namespace paceline::fabric
