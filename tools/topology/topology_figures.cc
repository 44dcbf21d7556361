#include "tools/topology/topology_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "dataplane/config/server_shape.h"
#include "dataplane/driver/traffic/fabric_ideal.h"
#include "dataplane/fabric/topology/topology.h"

namespace paceline::tools {

namespace {

using fabric::FabricSpec;

double bps_of(Rate rate) { return static_cast<double>(rate.bps); }

std::string rate_words(double bps) {
  if (bps >= 1e15) return fmt::format("{:.6g} Pb/s", bps / 1e15);
  if (bps >= 1e12) return fmt::format("{:.6g} Tb/s", bps / 1e12);
  return fmt::format("{:.6g} Gb/s", bps / 1e9);
}

class FigureMaker {
 public:
  FigureMaker(const config::Scenario& scenario, const FabricSpec& spec,
              const workload::NodeNumbers& numbers)
      : scenario_(scenario), spec_(spec), numbers_(numbers), tier_(tiers_of(spec)) {}

  TopologyFigures make() {
    const config::FabricConfig& config = scenario_.fabric;
    out_.nics = spec_.nics();
    out_.servers = out_.nics / config.nics;
    out_.ports = spec_.ports;
    count_nodes();
    count_links();
    count_unreachable();
    bisection();
    const fabric::Topology topology(spec_);
    if (spec_.shape.regular()) {
      regular_paths();
    } else {
      counted_paths(topology);
    }
    out_.longest_round_trip = FabricIdeal(scenario_, spec_, topology).longest_base_rtt();
    return std::move(out_);
  }

 private:
  std::uint32_t top() const { return static_cast<std::uint32_t>(out_.tiers.size() - 1); }

  void count_nodes() {
    std::uint32_t highest = 0;
    for (const std::uint32_t tier : tier_)
      highest = tier == kNoTier ? highest : std::max(highest, tier);
    for (std::uint32_t t = 0; t <= highest; ++t) out_.tiers.push_back({tier_name(t)});
    for (const std::uint32_t tier : tier_) {
      if (tier != kNoTier) ++out_.tiers[tier].nodes;
    }
    out_.tiers[0].nodes = out_.nics;
  }

  void count_links() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::uint64_t> kinds;
    std::vector<double> up(tier_.size());
    std::vector<double> down(tier_.size());
    for (const fabric::LinkSpec& link : spec_.links) {
      const auto [low, high] = std::minmax(tier_[link.a], tier_[link.b]);
      if (high == kNoTier) continue;
      ++kinds[{low, high, link.rate.bps}];
      if (low == high) continue;
      const bool a_below = tier_[link.a] == low;
      up[a_below ? link.a : link.b] += bps_of(link.rate);
      down[a_below ? link.b : link.a] += bps_of(link.rate);
    }
    for (const auto& [kind, count] : kinds) {
      out_.links.push_back({std::get<0>(kind), std::get<1>(kind), {std::get<2>(kind)}, count});
    }
    for (std::size_t node = spec_.hosts; node < tier_.size(); ++node) {
      if (tier_[node] == kNoTier || up[node] == 0) continue;
      double& worst = out_.tiers[tier_[node]].oversubscription;
      worst = std::max(worst, down[node] / up[node]);
    }
  }

  // NICs reach each other if some port of one reaches the same port of the other. NICs whose ports
  // are in the same islands are alike.
  void count_unreachable() {
    const std::vector<std::uint32_t> island = fabric::islands(spec_);
    std::map<std::vector<std::uint32_t>, std::pair<std::uint64_t, std::uint32_t>> kinds;
    std::vector<std::uint32_t> of(spec_.ports);
    for (std::uint32_t nic = 0; nic < out_.nics; ++nic) {
      for (std::uint32_t port = 0; port < spec_.ports; ++port) {
        of[port] = island[port * out_.nics + nic];
      }
      auto& [count, first] = kinds.try_emplace(of, 0, nic).first->second;
      ++count;
    }
    for (auto a = kinds.begin(); a != kinds.end(); ++a) {
      for (auto b = std::next(a); b != kinds.end(); ++b) {
        bool reach = false;
        for (std::uint32_t p = 0; p < spec_.ports; ++p) reach = reach || a->first[p] == b->first[p];
        if (reach) continue;
        if (out_.unreachable_pairs == 0) {
          out_.unreachable_example =
              nic_name(a->second.second) + " and " + nic_name(b->second.second);
        }
        out_.unreachable_pairs += a->second.first * b->second.first;
      }
    }
    // Planes: no island has ports of two indices.
    std::map<std::uint32_t, std::uint32_t> port_of;
    out_.planes = spec_.ports;
    for (std::uint32_t host = 0; host < spec_.hosts; ++host) {
      const std::uint32_t port = host / out_.nics;
      if (port_of.try_emplace(island[host], port).first->second != port) out_.planes = 1;
    }
  }

  std::string nic_name(std::uint32_t nic) const {
    const config::FabricConfig& config = scenario_.fabric;
    if (!config.links.empty()) return fmt::format("node {}", numbers_.number(nic));
    if (config.nics == 1) return fmt::format("host{}", nic);
    const config::ServerShape shape = config::server_shape(config);
    return fmt::format("host{} (server{}.nic{})", nic, shape.server_of(nic), shape.rail_of(nic));
  }

  // Half of the least that a tier carries upwards; links within the topmost tier carry all of it.
  void bisection() {
    if (out_.unreachable_pairs != 0) return;
    std::vector<double> up(out_.tiers.size());
    double across = 0;
    for (const LinkFigures& link : out_.links) {
      const double capacity = bps_of(link.rate) * static_cast<double>(link.count);
      if (link.lower != link.upper) {
        up[link.lower] += capacity;
      } else if (link.lower == top()) {
        across += capacity;
      }
    }
    out_.bisection_bps = up[0] / 2;
    const bool one_pod = spec_.shape.regular() && spec_.shape.pods == 1;
    for (std::uint32_t t = 1; t < top(); ++t) {
      if (out_.tiers[t].nodes == out_.planes || (t == 2 && one_pod)) continue;
      out_.bisection_bps = std::min(out_.bisection_bps, up[t] / 2);
    }
    if (across > 0) out_.bisection_bps = std::min(out_.bisection_bps, across);
  }

  void regular_paths() {
    const fabric::ClosShape& shape = spec_.shape;
    const std::uint64_t pair = std::uint64_t{shape.links_per_pair} * shape.links_per_pair;
    const std::uint64_t by_tier[] = {shape.hosts_per_leaf > 1 ? 1U : 0U,
                                     shape.dumbbell()   ? shape.links_per_pair
                                     : shape.leaves > 1 ? shape.spines * pair
                                                        : 0,
                                     shape.pods > 1 ? shape.cores * pair : 0};
    for (const std::uint64_t paths : by_tier) note_paths(paths);
  }

  void note_paths(std::uint64_t paths) {
    if (paths == 0) return;
    if (out_.least_paths == 0) out_.least_paths = paths;
    out_.least_paths = std::min(out_.least_paths, paths);
    out_.most_paths = std::max(out_.most_paths, paths);
  }

  // Backwards from every switch with hosts: the paths of a switch are those of its next hops.
  void counted_paths(const fabric::Topology& topology) {
    std::vector<std::uint32_t> with_hosts(spec_.switches);  // the first host; hosts: none
    std::vector<std::uint32_t> hosts_of(spec_.switches);
    for (std::uint32_t host = spec_.hosts; host-- > 0;) {
      const std::uint32_t at = topology.switch_of(host);
      if (at == fabric::Topology::kNoLink) continue;
      with_hosts[at] = host;
      ++hosts_of[at];
    }
    for (std::uint32_t to = 0; to < spec_.switches; ++to) {
      if (hosts_of[to] == 0) continue;
      if (hosts_of[to] > 1) note_paths(1);
      std::vector<std::uint64_t> paths(spec_.switches);
      std::vector<bool> known(spec_.switches);
      paths[to] = 1;
      known[to] = true;
      for (std::uint32_t from = 0; from < spec_.switches; ++from) {
        if (hosts_of[from] == 0 || from == to) continue;
        note_paths(paths_from(topology, with_hosts[to], from, paths, known));
      }
    }
  }

  static std::uint64_t paths_from(const fabric::Topology& topology, std::uint32_t host,
                                  std::uint32_t at, std::vector<std::uint64_t>& paths,
                                  std::vector<bool>& known) {
    if (known[at]) return paths[at];
    known[at] = true;
    const fabric::NextHop hop = topology.next_hop(at, host);
    for (std::uint32_t i = 0; i < hop.count; ++i) {
      const std::uint32_t link = hop.count == 1 ? hop.first : topology.member(hop, i);
      paths[at] += paths_from(topology, host, topology.far_switch(link), paths, known);
    }
    return paths[at];
  }

  const config::Scenario& scenario_;
  const FabricSpec& spec_;
  const workload::NodeNumbers& numbers_;
  std::vector<std::uint32_t> tier_;
  TopologyFigures out_;
};

std::string ratio_text(double ratio) {
  return ratio == 0 ? std::string("-") : fmt::format("{:.4g}:1", ratio);
}

}  // namespace

std::string tier_name(std::uint32_t tier) {
  constexpr const char* kNames[] = {"hosts", "leaves", "spines", "cores"};
  return tier < 4 ? kNames[tier] : fmt::format("tier {}", tier);
}

std::vector<std::uint32_t> tiers_of(const FabricSpec& spec) {
  const std::size_t nodes = std::size_t{spec.hosts} + spec.switches;
  std::vector<std::uint32_t> tier(nodes, kNoTier);
  std::vector<std::uint32_t> first(nodes + 1);  // of a node's neighbours
  for (const fabric::LinkSpec& link : spec.links) {
    ++first[link.a + 1];
    ++first[link.b + 1];
  }
  for (std::size_t node = 0; node < nodes; ++node) first[node + 1] += first[node];
  std::vector<std::uint32_t> neighbours(first.back());
  std::vector<std::uint32_t> filled(first.begin(), first.end() - 1);
  for (const fabric::LinkSpec& link : spec.links) {
    neighbours[filled[link.a]++] = link.b;
    neighbours[filled[link.b]++] = link.a;
  }
  std::vector<std::uint32_t> queue(spec.hosts);
  for (std::uint32_t host = 0; host < spec.hosts; ++host) {
    tier[host] = 0;
    queue[host] = host;
  }
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::uint32_t at = queue[head];
    for (std::uint32_t i = first[at]; i < first[at + 1]; ++i) {
      const std::uint32_t to = neighbours[i];
      if (tier[to] != kNoTier) continue;
      tier[to] = tier[at] + 1;
      queue.push_back(to);
    }
  }
  return tier;
}

TopologyFigures topology_figures(const config::Scenario& scenario, const FabricSpec& spec,
                                 const workload::NodeNumbers& numbers) {
  return FigureMaker(scenario, spec, numbers).make();
}

std::string topology_text(const std::string& name, const TopologyFigures& f) {
  std::string out =
      fmt::format("{}: {} server{} of {} NIC{}, {} port{} a NIC, {} plane{}\n", name, f.servers,
                  f.servers == 1 ? "" : "s", f.nics / f.servers, f.nics == f.servers ? "" : "s",
                  f.ports, f.ports == 1 ? "" : "s", f.planes, f.planes == 1 ? "" : "s");
  out += fmt::format("  {:<10} {:>10}  {}\n", "tier", "nodes", "oversubscription");
  for (const TierFigures& tier : f.tiers) {
    out += fmt::format("  {:<10} {:>10}  {}\n", tier.name, tier.nodes,
                       ratio_text(tier.oversubscription));
  }
  for (const LinkFigures& link : f.links) {
    out += fmt::format("  {} to {}: {} links of {}\n", f.tiers[link.lower].name,
                       f.tiers[link.upper].name, link.count, rate_words(bps_of(link.rate)));
  }
  out += fmt::format("  bisection bandwidth: {}\n",
                     f.unreachable_pairs == 0 ? rate_words(f.bisection_bps) : "0, see below");
  out += fmt::format("  equally short paths of a port: {} to {}\n", f.least_paths, f.most_paths);
  out += fmt::format("  longest base round trip: {:.3f} us\n",
                     static_cast<double>(f.longest_round_trip.count) / 1e6);
  out += f.unreachable_pairs == 0
             ? std::string("  every NIC reaches every other\n")
             : fmt::format("  {} pairs of NICs do not reach each other, such as {}\n",
                           f.unreachable_pairs, f.unreachable_example);
  return out;
}

nlohmann::json topology_json(const std::string& name, const TopologyFigures& f) {
  nlohmann::json out;
  out["name"] = name;
  out["servers"] = f.servers;
  out["nics"] = f.nics;
  out["ports"] = f.ports;
  out["planes"] = f.planes;
  out["tiers"] = nlohmann::json::array();
  for (const TierFigures& tier : f.tiers) {
    out["tiers"].push_back({{"name", tier.name}, {"nodes", tier.nodes}});
    if (tier.oversubscription != 0) out["tiers"].back()["oversubscription"] = tier.oversubscription;
  }
  out["links"] = nlohmann::json::array();
  for (const LinkFigures& link : f.links) {
    out["links"].push_back({{"lower", f.tiers[link.lower].name},
                            {"upper", f.tiers[link.upper].name},
                            {"rate_bps", link.rate.bps},
                            {"count", link.count}});
  }
  out["bisection_bps"] = f.bisection_bps;
  out["paths"] = {{"least", f.least_paths}, {"most", f.most_paths}};
  out["longest_base_round_trip_ns"] = static_cast<double>(f.longest_round_trip.count) / 1e3;
  out["unreachable_pairs"] = f.unreachable_pairs;
  if (f.unreachable_pairs != 0) out["unreachable_example"] = f.unreachable_example;
  return out;
}

}  // namespace paceline::tools
