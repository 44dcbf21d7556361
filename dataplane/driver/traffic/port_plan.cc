#include "dataplane/driver/traffic/port_plan.h"

#include <algorithm>
#include <map>
#include <span>

#include "dataplane/base/random.h"
#include "dataplane/fabric/wire/host_intake.h"
#include "dataplane/wire/headers.h"

namespace paceline {

namespace {

constexpr std::uint32_t kCandidates = 16;
constexpr std::uint32_t kStep = 0x1E37;  // odd: the candidates differ
constexpr std::size_t kMostPhases = 128;
constexpr std::size_t kMostLoads = std::size_t{1} << 24;

// Of each message, how many follow one another before it, at most.
std::vector<std::uint32_t> depths_of(const MessagePlan& plan) {
  const auto count = static_cast<std::uint32_t>(plan.messages.size());
  std::vector<Join> edges = plan.joins;
  for (std::uint32_t id = 0; id < count; ++id) {
    if (plan.messages[id].after != kNoMessage) edges.push_back({id, plan.messages[id].after});
  }
  std::sort(edges.begin(), edges.end(), [](const Join& a, const Join& b) {
    return std::pair(a.after, a.message) < std::pair(b.after, b.message);
  });
  std::vector<std::uint32_t> waits(count), depths(count), ready;
  for (const Join& edge : edges) ++waits[edge.message];
  for (std::uint32_t id = 0; id < count; ++id) {
    if (waits[id] == 0) ready.push_back(id);
  }
  while (!ready.empty()) {
    const std::uint32_t id = ready.back();
    ready.pop_back();
    const std::uint32_t next = depths[id] + (plan.messages[id].computes ? 0 : 1);
    auto edge = std::lower_bound(edges.begin(), edges.end(), id,
                                 [](const Join& e, std::uint32_t v) { return e.after < v; });
    for (; edge != edges.end() && edge->after == id; ++edge) {
      depths[edge->message] = std::max(depths[edge->message], next);
      if (--waits[edge->message] == 0) ready.push_back(edge->message);
    }
  }
  return depths;
}

// What a connection sends in a phase of the plan. Messages of one depth are taken for simultaneous;
// a phase has one depth, or several that follow one another where there are many.
struct PhaseBytes {
  std::uint32_t phase = 0;
  std::uint64_t bytes = 0;
};

// How long each directed link is busy with what it carries, by phase.
class LinkLoads {
 public:
  LinkLoads(const fabric::FabricSpec& spec, const fabric::Topology& topology, std::size_t phases)
      : spec_(spec),
        topology_(topology),
        links_(2 * spec.links.size()),
        busy_(links_ * phases),
        busiest_(phases) {}

  // The links between switches that a connection takes with this port.
  std::vector<std::uint32_t> way(std::uint32_t src, std::uint32_t dst, std::uint16_t port) const {
    std::vector<std::uint32_t> links = topology_.path(
        src, dst,
        fabric::entropy_of(spec_.subnet_base + 1 + src, spec_.subnet_base + 1 + dst, port));
    if (links.size() <= 2) return {};
    return {links.begin() + 1, links.end() - 1};
  }
  // By how much the phases would last longer, each as long as its busiest link is busy; and what
  // there is on the links before.
  std::pair<double, double> cost(std::span<const std::uint32_t> links,
                                 std::span<const PhaseBytes> sent) const {
    std::pair<double, double> cost{0, 0};
    for (const auto& [phase, bytes] : sent) {
      double longest = busiest_[phase];
      for (const std::uint32_t link : links) {
        const double before = busy_[phase * links_ + link];
        longest = std::max(longest, before + time(link, bytes));
        cost.second += before;
      }
      cost.first += longest - busiest_[phase];
    }
    return cost;
  }
  void add(std::span<const std::uint32_t> links, std::span<const PhaseBytes> sent) {
    for (const auto& [phase, bytes] : sent) {
      for (const std::uint32_t link : links) {
        double& busy = busy_[phase * links_ + link];
        busy += time(link, bytes);
        busiest_[phase] = std::max(busiest_[phase], busy);
      }
    }
  }

 private:
  double time(std::uint32_t link, std::uint64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(spec_.links[link / 2].rate.bps);
  }

  const fabric::FabricSpec& spec_;
  const fabric::Topology& topology_;
  std::size_t links_;
  std::vector<double> busy_;
  std::vector<double> busiest_;
};

}  // namespace

std::uint16_t on_plane(std::uint16_t port, std::uint32_t number, std::uint32_t planes) {
  return wire::source_port_from_entropy(port / planes * planes + number % planes);
}

PortPlan::PortPlan(const MessagePlan& plan, const fabric::FabricSpec& spec,
                   const fabric::Topology& topology, std::uint64_t seed) {
  const std::vector<std::uint32_t> depths = depths_of(plan);
  const std::size_t depth =
      depths.empty() ? 1 : *std::max_element(depths.begin(), depths.end()) + 1;
  const std::size_t room = std::max<std::size_t>(1, kMostLoads / (2 * spec.links.size() + 1));
  const std::size_t phases = std::min({depth, kMostPhases, room});
  struct Traffic {
    std::uint64_t bytes = 0;
    std::map<std::uint32_t, std::uint64_t> by_phase;
  };
  std::map<Connection, Traffic> all;
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const PlannedMessage& m = plan.messages[id];
    if (m.computes || m.nvlink || m.lane == kNoMessage) continue;
    Traffic& traffic = all[{m.src, m.dst, m.lane}];
    traffic.bytes += m.bytes;
    traffic.by_phase[static_cast<std::uint32_t>(depths[id] * phases / depth)] += m.bytes;
  }
  std::vector<std::pair<Connection, const Traffic*>> order;
  for (const auto& [connection, traffic] : all) order.emplace_back(connection, &traffic);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second->bytes > b.second->bytes; });
  LinkLoads loads(spec, topology, phases);
  std::uint64_t number = 0;
  for (const auto& [connection, traffic] : order) {
    const auto [src, dst, lane] = connection;
    std::vector<PhaseBytes> sent;
    for (const auto& [phase, bytes] : traffic->by_phase) sent.push_back({phase, bytes});
    const std::uint64_t first = mix64(seed + ++number);
    std::uint16_t best = 0;
    std::vector<std::uint32_t> best_way;
    std::pair<double, double> least;
    for (std::uint32_t c = 0; c < kCandidates; ++c) {
      const std::uint16_t port =
          wire::source_port_from_entropy(static_cast<std::uint32_t>(first + c * kStep));
      std::vector<std::uint32_t> way = loads.way(src, dst, port);
      const std::pair<double, double> cost = loads.cost(way, sent);
      if (c == 0 || cost < least) {
        best = port;
        least = cost;
        best_way = std::move(way);
      }
      if (best_way.empty()) break;  // no choice: both are at one switch
    }
    loads.add(best_way, sent);
    ports_.emplace_back(connection, best);
  }
  std::sort(ports_.begin(), ports_.end());
}

std::optional<std::uint16_t> PortPlan::port_of(const PlannedMessage& message) const {
  const Connection connection{message.src, message.dst, message.lane};
  const auto at = std::lower_bound(
      ports_.begin(), ports_.end(), connection,
      [](const auto& entry, const Connection& wanted) { return entry.first < wanted; });
  if (at == ports_.end() || at->first != connection) return std::nullopt;
  return at->second;
}

}  // namespace paceline
