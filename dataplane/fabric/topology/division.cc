#include "dataplane/fabric/topology/division.h"

#include <algorithm>

namespace paceline::fabric {

Picos shortest_delay(const FabricSpec& spec, std::uint32_t link) {
  Picos shortest = spec.links[link / 2].delay;
  for (const LinkEvent& event : spec.events) {
    if (event.link == link / 2 && event.action == LinkAction::delay) {
      shortest = earlier(shortest, event.delay);
    }
  }
  return shortest;
}

Division divide(const FabricSpec& spec, std::uint32_t parts) {
  constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  Division out;
  out.part_of_node.assign(std::size_t{spec.hosts} + spec.switches, 0);
  std::vector<std::vector<std::uint32_t>> neighbours(spec.switches);  // switches, by link
  std::vector<std::uint32_t> hosts_of(spec.switches);
  std::vector<std::uint32_t> switch_of(spec.hosts, kNone);
  for (const LinkSpec& link : spec.links) {
    for (const auto& [from, to] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) {
      if (from < spec.hosts) {
        if (to >= spec.hosts) switch_of[from] = to - spec.hosts;
      } else if (to < spec.hosts) {
        ++hosts_of[from - spec.hosts];
      } else {
        neighbours[from - spec.hosts].push_back(to - spec.hosts);
      }
    }
  }
  const auto edges = static_cast<std::uint32_t>(
      std::count_if(hosts_of.begin(), hosts_of.end(), [](std::uint32_t n) { return n != 0; }));
  // Two hosts back to back have no switch: they stay together, alone.
  if (edges == 0 || std::find(switch_of.begin(), switch_of.end(), kNone) != switch_of.end()) {
    return out;
  }
  out.parts = std::max<std::uint32_t>(1, std::min(parts, edges));
  if (out.parts == 1) return out;

  // By hosts: with all hosts in a row, a switch goes to the part into which the middle one of its
  // hosts falls; but each part gets at least one switch.
  std::vector<std::uint32_t> part_of(spec.switches, kNone);
  std::vector<std::uint64_t> load(out.parts);  // links of its switches
  const auto take = [&](std::uint32_t sw, std::uint32_t part) {
    part_of[sw] = part;
    load[part] += hosts_of[sw] + neighbours[sw].size();
  };
  std::uint64_t before = 0;
  std::uint32_t left = edges;
  std::uint32_t last = 0;
  for (std::uint32_t sw = 0; sw < spec.switches; ++sw) {
    if (hosts_of[sw] == 0) continue;
    const auto middle = static_cast<std::uint32_t>((2 * before + hosts_of[sw]) * out.parts /
                                                   (2 * std::uint64_t{spec.hosts}));
    const bool first = left == edges;
    std::uint32_t part = first ? 0 : std::clamp(middle, last, last + 1);
    if (out.parts - 1 - part >= left) part = out.parts - left;  // the rest needs one each
    take(sw, part);
    last = part;
    before += hosts_of[sw];
    --left;
  }

  // Outwards from there, tier by tier.
  std::vector<std::uint32_t> links_to(out.parts);
  std::vector<std::uint32_t> known;  // as it was when the tier began
  for (bool found = true; found;) {
    found = false;
    known = part_of;
    for (std::uint32_t sw = 0; sw < spec.switches; ++sw) {
      if (known[sw] != kNone) continue;
      std::fill(links_to.begin(), links_to.end(), 0);
      std::uint32_t placed = 0;
      for (const std::uint32_t to : neighbours[sw]) {
        if (known[to] == kNone) continue;
        ++links_to[known[to]];
        ++placed;
      }
      if (placed == 0) continue;
      std::uint32_t best = 0;
      for (std::uint32_t part = 1; part < out.parts; ++part) {
        if (links_to[part] > links_to[best] ||
            (links_to[part] == links_to[best] && load[part] < load[best])) {
          best = part;
        }
      }
      take(sw, best);
      found = true;
    }
  }
  for (std::uint32_t sw = 0; sw < spec.switches; ++sw) {
    out.part_of_node[spec.hosts + sw] = part_of[sw] == kNone ? 0 : part_of[sw];
  }
  for (std::uint32_t host = 0; host < spec.hosts; ++host) {
    out.part_of_node[host] = part_of[switch_of[host]];
  }
  for (std::uint32_t link = 0; link < 2 * spec.links.size(); ++link) {
    if (out.crosses(spec, link)) {
      out.lookahead = earlier(out.lookahead, shortest_delay(spec, link));
    }
  }
  return out;
}

}  // namespace paceline::fabric
