#include "dataplane/driver/traffic/port_plan.h"

#include <algorithm>
#include <map>
#include <span>

#include "dataplane/base/numbers/random.h"
#include "dataplane/fabric/wire/host_intake.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline {

namespace {

constexpr std::uint32_t kCandidates = 16;
constexpr std::uint32_t kStep = 0x1E37;  // odd: the candidates differ

// How long each directed link is busy with its load.
class LinkLoads {
 public:
  LinkLoads(const fabric::FabricSpec& spec, const fabric::Topology& topology)
      : spec_(spec), topology_(topology) {}

  // The links between switches that a connection takes with this port.
  std::vector<std::uint32_t> way(std::uint32_t src, std::uint32_t dst, std::uint16_t port) const {
    std::vector<std::uint32_t> links = topology_.path(
        src, dst,
        fabric::entropy_of(spec_.subnet_base + 1 + src, spec_.subnet_base + 1 + dst, port));
    if (links.size() <= 2) return {};
    return {links.begin() + 1, links.end() - 1};
  }
  // (the busiest, their sum)
  std::pair<double, double> load(std::span<const std::uint32_t> links) const {
    std::pair<double, double> load{0, 0};
    for (const std::uint32_t link : links) {
      if (busy_.empty()) break;
      load.first = std::max(load.first, busy_[link]);
      load.second += busy_[link];
    }
    return load;
  }
  void add(std::span<const std::uint32_t> links, std::uint64_t bytes) {
    busy_.resize(2 * spec_.links.size());
    for (const std::uint32_t link : links) {
      const std::uint32_t both_ways = link / 2;
      const Rate rate = spec_.links[both_ways].rate;
      busy_[link] += static_cast<double>(bytes) / static_cast<double>(rate.bps);
    }
  }

 private:
  const fabric::FabricSpec& spec_;
  const fabric::Topology& topology_;
  std::vector<double> busy_;
};

}  // namespace

std::uint16_t on_plane(std::uint16_t port, std::uint32_t number, std::uint32_t planes) {
  return wire::source_port_from_entropy(port / planes * planes + number % planes);
}

std::optional<std::uint16_t> port_by(std::uint32_t link, const fabric::FabricSpec& spec,
                                     const fabric::Topology& topology, std::uint32_t src,
                                     std::uint32_t dst, std::uint16_t port) {
  constexpr std::uint32_t kTries = 256;
  const LinkLoads links(spec, topology);
  std::uint16_t tried = port;
  for (std::uint32_t t = 1; t <= kTries; ++t) {
    const std::vector<std::uint32_t> way = links.way(src, dst, tried);
    if (std::find(way.begin(), way.end(), link) != way.end()) return tried;
    if (way.empty()) break;  // both are at one switch
    tried = wire::source_port_from_entropy(port + t * kStep);
  }
  return std::nullopt;
}

PortPlan::PortPlan(const MessagePlan& plan, const fabric::FabricSpec& spec,
                   const fabric::Topology& topology, std::uint64_t seed) {
  std::map<Connection, std::uint64_t> bytes;
  for (const PlannedMessage& m : plan.messages) {
    if (m.computes || m.nvlink || m.lane == kNoMessage) continue;
    bytes[{m.src, m.dst, m.lane}] += m.bytes;
  }
  std::vector<std::pair<Connection, std::uint64_t>> order(bytes.begin(), bytes.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  LinkLoads loads(spec, topology);
  std::uint64_t number = 0;
  for (const auto& [connection, size] : order) {
    const auto [src, dst, lane] = connection;
    const std::uint64_t first = mix64(seed + ++number);
    std::uint16_t best = 0;
    std::vector<std::uint32_t> best_way;
    std::pair<double, double> least;
    for (std::uint32_t c = 0; c < kCandidates; ++c) {
      const std::uint16_t port =
          wire::source_port_from_entropy(static_cast<std::uint32_t>(first + c * kStep));
      std::vector<std::uint32_t> way = loads.way(src, dst, port);
      const std::pair<double, double> load = loads.load(way);
      if (c == 0 || load < least) {
        best = port;
        least = load;
        best_way = std::move(way);
      }
      if (best_way.empty()) break;  // no choice: both are at one switch
    }
    loads.add(best_way, size);
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
