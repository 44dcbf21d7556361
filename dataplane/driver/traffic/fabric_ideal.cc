#include "dataplane/driver/traffic/fabric_ideal.h"

#include <algorithm>
#include <utility>

namespace paceline {

namespace {

constexpr double kPicosBitsPerByte = 8e12;

// Hosts to look at for the longest path: on a regular fabric the last host that the first one
// reaches is as far as any; else one host per switch stands for the others, whose links may differ
// only in rate.
std::vector<std::uint32_t> representatives(const fabric::FabricSpec& spec,
                                           const fabric::Topology& topology) {
  if (const fabric::ClosShape& shape = spec.shape; shape.regular()) {
    const std::uint32_t pods = shape.cores == 0 ? 1 : shape.pods;
    return {0, pods * shape.leaves * shape.hosts_per_leaf - 1};
  }
  std::vector<std::uint32_t> hosts;
  std::vector<std::vector<IdealLink>> seen(spec.switches + std::size_t{1});
  for (std::uint32_t host = 0; host < spec.hosts; ++host) {
    const fabric::LinkSpec& link = spec.links[topology.host_uplink(host) / 2];
    const std::uint32_t at = topology.switch_of(host);
    auto& known = seen[at == fabric::Topology::kNoLink ? spec.switches : at];
    const IdealLink kind{link.rate, link.delay};
    if (at != fabric::Topology::kNoLink &&
        std::find(known.begin(), known.end(), kind) != known.end()) {
      // Two of a kind, for the path between neighbours.
      if (std::count(known.begin(), known.end(), kind) > 1) continue;
    }
    known.push_back(kind);
    hosts.push_back(host);
  }
  return hosts;
}

}  // namespace

IdealClock FabricIdeal::clock(std::uint32_t src, std::uint32_t dst) const {
  std::vector<IdealLink> path;
  for (const std::uint32_t link : topology_.path(src, dst)) {
    path.push_back({spec_.links[link / 2].rate, spec_.links[link / 2].delay});
  }
  // No path: the message will fail; its own link is as good a yardstick as any.
  if (path.empty()) {
    const fabric::LinkSpec& own = spec_.links[topology_.host_uplink(src) / 2];
    path.push_back({own.rate, own.delay});
  }
  return {scenario_, std::move(path)};
}

Picos FabricIdeal::fct(const MessagePlan& plan, const PlannedMessage& message) const {
  const Picos own = message.nvlink ? nvlink().transfer(message.bytes)
                                   : fct(message.src, message.dst, message.bytes);
  return message.relays ? own + fct(plan, plan.messages[message.after]) : own;
}

Picos FabricIdeal::longest_base_rtt() const {
  const std::vector<std::uint32_t> hosts = representatives(spec_, topology_);
  Picos longest{0};
  for (const std::uint32_t a : hosts) {
    for (const std::uint32_t b : hosts) {
      if (a != b) longest = later(longest, clock(a, b).base_rtt());
    }
  }
  return longest;
}

void FabricIdeal::fill(MessagePlan& plan) const {
  std::vector<std::vector<std::uint32_t>> messages(plan.collectives.size());
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const std::size_t c = plan.messages[id].collective;
    if (c < messages.size() && !plan.messages[id].computes) messages[c].push_back(id);
  }
  for (std::size_t c = 0; c < messages.size(); ++c) {
    plan.collectives[c].ideal = collective(plan, messages[c]);
  }
}

Picos FabricIdeal::busiest_nvlink(const MessagePlan& plan,
                                  std::vector<std::uint32_t>& messages) const {
  std::vector<std::uint64_t> out;
  const auto others = std::remove_if(messages.begin(), messages.end(), [&](std::uint32_t id) {
    const PlannedMessage& m = plan.messages[id];
    if (!m.nvlink) return false;
    out.resize(spec_.hosts);
    out[m.src] += m.bytes;
    return true;
  });
  messages.erase(others, messages.end());
  if (out.empty()) return Picos{0};
  return nvlink().transfer(*std::max_element(out.begin(), out.end()));
}

Picos FabricIdeal::collective(const MessagePlan& plan, std::vector<std::uint32_t>& messages) const {
  const Picos inside = busiest_nvlink(plan, messages);
  std::vector<std::uint64_t> in(spec_.hosts), out(spec_.hosts);
  Picos latency{0};
  const IdealClock bytes_of(scenario_, 2);
  for (const std::uint32_t id : messages) {
    const PlannedMessage& m = plan.messages[id];
    const std::uint64_t bytes = bytes_of.wire_bytes(m.bytes);
    out[m.src] += bytes;
    in[m.dst] += bytes;
  }
  Picos busiest{0};
  for (std::uint32_t h = 0; h < spec_.hosts; ++h) {
    const Rate rate{spec_.links[topology_.host_uplink(h) / 2].rate.bps * spec_.ports};
    busiest = later(busiest, serialization_time(in[h], rate));
    busiest = later(busiest, serialization_time(out[h], rate));
  }
  if (spec_.switches == 1) {
    if (!messages.empty()) {
      const PlannedMessage& any = plan.messages[messages.front()];
      latency = clock(any.src, any.dst).latency();
    }
    return later(inside, busiest + latency);
  }
  // By destination switch, so that what goes the same way is carried through the fabric at once.
  std::stable_sort(messages.begin(), messages.end(), [&](std::uint32_t a, std::uint32_t b) {
    return topology_.switch_of(plan.messages[a].dst) < topology_.switch_of(plan.messages[b].dst);
  });
  std::pair<std::uint32_t, std::uint32_t> last_pair{fabric::Topology::kNoLink, 0};
  for (const std::uint32_t id : messages) {
    const PlannedMessage& m = plan.messages[id];
    const std::pair pair{topology_.switch_of(m.src), topology_.switch_of(m.dst)};
    if (pair == last_pair && spec_.shape.regular()) continue;
    last_pair = pair;
    latency = later(latency, clock(m.src, m.dst).latency());
  }
  const double core = busiest_switch_port(plan, messages);
  return later(inside, later(busiest, Picos{static_cast<std::int64_t>(core)}) + latency);
}

// In picoseconds, over the ports between switches. `messages` sorted by destination switch.
double FabricIdeal::busiest_switch_port(const MessagePlan& plan,
                                        const std::vector<std::uint32_t>& messages) const {
  const IdealClock bytes_of(scenario_, 2);
  std::vector<double> load(2 * spec_.links.size());     // bytes by directed link
  std::vector<double> waiting(spec_.switches);          // bytes to be forwarded to this destination
  std::vector<std::vector<std::uint32_t>> by_distance;  // switches with such bytes
  const auto rate_bps = [this](std::size_t directed) {
    const std::size_t link = directed / 2;
    // All of a host's bytes are on the path of its first port; the others carry as much.
    return static_cast<double>(spec_.links[link].rate.bps) * spec_.ports;
  };
  // Links from a switch to the destination; every equal-cost way is as long as the first.
  const auto distance = [&](std::uint32_t at, std::uint32_t host) {
    std::size_t links = 0;
    while (at != topology_.switch_of(host)) {
      const fabric::NextHop hop = topology_.next_hop(at, host);
      if (hop.count == 0) return std::size_t{0};
      at = topology_.far_switch(hop.count == 1 ? hop.first : topology_.member(hop, 0));
      ++links;
    }
    return links;
  };
  const auto put = [&](std::uint32_t at, std::size_t far, double bytes) {
    if (far == 0) return;
    if (by_distance.size() <= far) by_distance.resize(far + 1);
    if (waiting[at] == 0) by_distance[far].push_back(at);
    waiting[at] += bytes;
  };
  for (std::size_t i = 0; i < messages.size();) {
    const std::uint32_t host = plan.messages[messages[i]].dst;
    const std::uint32_t to = topology_.switch_of(host);
    for (; i < messages.size() && topology_.switch_of(plan.messages[messages[i]].dst) == to; ++i) {
      const PlannedMessage& m = plan.messages[messages[i]];
      const std::uint32_t from = topology_.switch_of(m.src);
      if (from == fabric::Topology::kNoLink || to == fabric::Topology::kNoLink) continue;
      put(from, distance(from, host), static_cast<double>(bytes_of.wire_bytes(m.bytes)));
    }
    for (std::size_t far = by_distance.size(); far-- > 1;) {
      for (std::size_t n = 0; n < by_distance[far].size(); ++n) {
        const std::uint32_t at = by_distance[far][n];
        const fabric::NextHop hop = topology_.next_hop(at, host);
        double capacity = 0;
        const auto link_at = [&](std::uint32_t j) {
          return hop.count == 1 ? hop.first : topology_.member(hop, j);
        };
        for (std::uint32_t j = 0; j < hop.count; ++j) {
          capacity += rate_bps(link_at(j));
        }
        for (std::uint32_t j = 0; j < hop.count; ++j) {
          const std::uint32_t link = link_at(j);
          const double share = rate_bps(link) / capacity;
          load[link] += waiting[at] * share;
          put(topology_.far_switch(link), far - 1, waiting[at] * share);
        }
        waiting[at] = 0;
      }
      by_distance[far].clear();
    }
  }
  double busiest = 0;
  for (std::size_t link = 0; link < load.size(); ++link) {
    busiest = std::max(busiest, load[link] * kPicosBitsPerByte / rate_bps(link));
  }
  return busiest;
}

}  // namespace paceline
