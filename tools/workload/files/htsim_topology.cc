#include "tools/workload/files/htsim_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/scenario/fabric_shape.h"
#include "tools/workload/files/text_table.h"

namespace paceline::workload {

namespace {

constexpr std::uint64_t kMostGbps = 3200;
constexpr std::uint64_t kMostNanos = 1'000'000'000;

std::string lower(std::string_view word) {
  std::string out(word);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

class HtsimParser {
 public:
  HtsimParser(std::string_view text, const std::string& source) : table_(text, source) {}

  config::Read<HtsimTopology> parse() {
    while (!errors_.full() && table_.next(line_)) key();
    if (errors_.empty()) check_given();
    if (errors_.empty()) derive();
    config::Read<HtsimTopology> out;
    out.errors = errors_.list();
    if (out.ok()) out.value = out_;
    return out;
  }

 private:
  void key() {
    const Word& word = line_.words[0];
    if (line_.words.size() != 2) {
      errors_.add(table_.behind(line_),
                  fmt::format("{} columns: expected 2, a key and a number", line_.words.size()));
      return;
    }
    const std::string name = lower(word.text);
    if (name == "tier") {
      std::uint64_t tier = 0;
      if (read_integer(table_, line_.words[1], "Tier", 0, 2, tier, errors_)) at_ = tier;
      return;
    }
    const bool whole = name == "nodes" || name == "tiers" || name == "podsize";
    if (!whole && !at_) {
      errors_.add(
          table_.where(word),
          fmt::format("{} before any Tier: expected Nodes, Tiers, Podsize or Tier", word.text));
      return;
    }
    const std::string once = whole ? name : fmt::format("{} {}", *at_, name);
    if (!given_.insert(once).second) {
      errors_.add(table_.where(word), fmt::format("{} is given twice", word.text));
      return;
    }
    if (whole) {
      header(name);
    } else {
      tier_key(name, out_.tier[*at_]);
    }
  }

  void header(const std::string& name) {
    if (name == "nodes") {
      out_.hosts = number("Nodes", 2, config::kMostHosts);
    } else if (name == "tiers") {
      out_.tiers = number("Tiers", 2, 3);
    } else {
      pod_size_ = number("Podsize", 1, config::kMostHosts);
    }
  }

  void tier_key(const std::string& name, HtsimTier& tier) {
    if (name == "downlink_speed_gbps") {
      tier.down_rate = rate_from_gbps(number("Downlink_speed_Gbps", 1, kMostGbps));
    } else if (name == "radix_down") {
      tier.radix_down = number("Radix_Down", 1, config::kMostHosts);
    } else if (name == "radix_up") {
      tier.radix_up = number("Radix_Up", 1, 65536);
    } else if (name == "downlink_latency_ns") {
      tier.down_delay = picos_from_nanos(number("Downlink_Latency_ns", 1, kMostNanos));
    } else if (name == "switch_latency_ns") {
      tier.switch_delay = picos_from_nanos(number("Switch_Latency_ns", 0, kMostNanos));
    } else if (name == "oversubscribed") {
      tier.oversubscribed = number("Oversubscribed", 1, 65536);
    } else if (name == "bundle") {
      tier.bundle = number("Bundle", 1, 256);
    } else if (name == "queue_up") {
      tier.queue_up = number("Queue_up", 0, 0xFFFF'FFFF);
    } else if (name == "queue_down") {
      tier.queue_down = number("Queue_down", 0, 0xFFFF'FFFF);
    } else {
      errors_.add(table_.where(line_.words[0]),
                  fmt::format("unknown key {}: expected Downlink_speed_Gbps, Radix_Down, Radix_Up, "
                              "Downlink_Latency_ns, Switch_Latency_ns, Oversubscribed, Bundle, "
                              "Queue_up or Queue_down",
                              line_.words[0].text));
    }
  }

  std::uint32_t number(std::string_view what, std::uint64_t min, std::uint64_t max) {
    std::uint64_t value = min;
    read_integer(table_, line_.words[1], what, min, max, value, errors_);
    return static_cast<std::uint32_t>(value);
  }

  void check_given() {
    for (const char* key : {"nodes", "tiers", "podsize"}) need(key, key);
    for (std::uint32_t t = 0; t < out_.tiers; ++t) {
      for (const char* key : {"downlink_speed_gbps", "radix_down", "downlink_latency_ns"}) {
        need(fmt::format("{} {}", t, key), fmt::format("tier {}: {}", t, key));
      }
      if (t + 1 < out_.tiers) {
        need(fmt::format("{} radix_up", t), fmt::format("tier {}: radix_up", t));
      } else if (out_.tier[t].radix_up != 0) {
        wrong(fmt::format("tier {} is the topmost and has a Radix_Up", t));
      }
    }
  }

  void need(const std::string& key, const std::string& what) {
    if (given_.count(key) == 0) wrong(fmt::format("{} is missing", what));
  }
  void wrong(const std::string& message) { errors_.add(table_.end(), message); }

  // A quotient that must be whole and at least 1; 0 otherwise, reported.
  std::uint32_t quotient(std::uint64_t value, std::uint64_t by, std::string_view what) {
    if (value != 0 && by != 0 && value % by == 0) return static_cast<std::uint32_t>(value / by);
    wrong(fmt::format("{}: {} / {} is not a whole number above 0", what, value, by));
    return 0;
  }

  static std::uint64_t gbps(const HtsimTier& tier) { return tier.down_rate.bps / 1'000'000'000; }

  void derive() {
    const auto& t = out_.tier;
    const std::uint64_t n = out_.hosts;
    out_.pods = out_.tiers == 2 ? 1 : quotient(n, pod_size_, "pods, Nodes / Podsize");
    out_.leaves = quotient(n, t[0].radix_down, "leaves, Nodes / Radix_Down of tier 0");
    if (t[0].bundle != 1) wrong("tier 0 has a Bundle other than 1: a host has one port");
    if (out_.tiers == 2 && pod_size_ != n) wrong("with two tiers Podsize is Nodes");
    const std::uint32_t up = quotient(n * gbps(t[0]), gbps(t[1]) * t[0].oversubscribed,
                                      "uplinks of leaves, Nodes x speed / (speed above x "
                                      "Oversubscribed)");
    if (!errors_.empty()) return;
    if (t[0].radix_down / t[0].radix_up != t[0].oversubscribed) {
      wrong(fmt::format("tier 0: Radix_Down / Radix_Up = {} / {} is not Oversubscribed = {}",
                        t[0].radix_down, t[0].radix_up, t[0].oversubscribed));
    }
    const std::uint32_t per_pod =
        quotient(up, std::uint64_t{out_.pods} * t[1].radix_down, "spines of a pod");
    out_.spines = per_pod * out_.pods;
    if (std::uint64_t{per_pod} * t[1].bundle != t[0].radix_up) {
      wrong(fmt::format("tier 0: Radix_Up = {} is not {} spines of a pod by {} links",
                        t[0].radix_up, per_pod, t[1].bundle));
    }
    if (out_.leaves % out_.pods != 0) wrong("the leaves are not a multiple of the pods");
    if (out_.tiers == 2 || !errors_.empty()) return;
    const std::uint32_t up2 = quotient(std::uint64_t{up} * gbps(t[1]),
                                       gbps(t[2]) * t[1].oversubscribed, "uplinks of spines");
    out_.cores = quotient(up2, t[2].radix_down, "cores");
    const std::uint32_t group = quotient(out_.cores, per_pod, "cores of a spine");
    if (std::uint64_t{group} * t[2].bundle != t[1].radix_up) {
      wrong(fmt::format("tier 1: Radix_Up = {} is not {} cores of a spine by {} links",
                        t[1].radix_up, group, t[2].bundle));
    }
  }

  TextTable table_;
  TextLine line_;
  TableErrors errors_;
  HtsimTopology out_;
  std::uint32_t pod_size_ = 0;
  std::optional<std::uint64_t> at_;  // the tier of the keys that follow
  std::set<std::string> given_;
};

// The first reason why a tier cannot be expressed; empty: it can.
std::string beyond_keys(const HtsimTopology& topology) {
  for (std::uint32_t t = 0; t < topology.tiers; ++t) {
    const HtsimTier& tier = topology.tier[t];
    if (tier.switch_delay.count != 0) {
      return fmt::format("tier {} has a Switch_Latency_ns; switches here have none", t);
    }
    if (t == 2 && tier.bundle != 1) {
      return "tier 2 has a Bundle of parallel links between a spine and a core; here there is one";
    }
    if (t == 2 && tier.down_delay != topology.tier[1].down_delay) {
      return "tiers 1 and 2 have different latencies; here links between switches have one delay";
    }
  }
  return {};
}

}  // namespace

std::uint64_t HtsimTopology::links() const {
  std::uint64_t all = hosts + std::uint64_t{leaves} * tier[0].radix_up;
  if (tiers == 3) all += std::uint64_t{spines} * tier[1].radix_up;
  return all;
}

config::Read<HtsimTopology> parse_htsim_topology(std::string_view text, const std::string& source) {
  return HtsimParser(text, source).parse();
}

FabricFromHtsim fabric_from_htsim(const HtsimTopology& topology) {
  FabricFromHtsim out;
  out.error = beyond_keys(topology);
  config::FabricConfig& f = out.fabric;
  f.topology = topology.tiers == 2 ? "leaf_spine" : "fat_tree";
  f.hosts = topology.hosts;
  f.pods = topology.pods;
  f.leaves = topology.leaves / topology.pods;
  f.spines = topology.spines / topology.pods;
  f.hosts_per_leaf = topology.tier[0].radix_down;
  f.links_per_pair = topology.tier[1].bundle;
  f.rate = topology.tier[0].down_rate;
  f.uplink_rate = topology.tier[1].down_rate;
  f.delay = topology.tier[0].down_delay;
  f.uplink_delay = topology.tier[1].down_delay;
  if (topology.tiers == 3) {
    f.cores = topology.cores;
    f.core_rate = topology.tier[2].down_rate;
  }
  return out;
}

config::Read<std::string> write_htsim_topology(const config::FabricConfig& fabric) {
  config::Read<std::string> out;
  const auto refuse = [&out](std::string why) {
    out.errors.push_back("the format of htsim cannot express this fabric: " + std::move(why));
    return out;
  };
  if (fabric.topology != "leaf_spine" && fabric.topology != "fat_tree") {
    return refuse(fmt::format("fabric.topology = \"{}\"; allowed is \"leaf_spine\" or \"fat_tree\"",
                              fabric.topology));
  }
  if (fabric.ports != 1) return refuse("a host has one port there");
  const config::FabricShape shape = config::shape_of(fabric);
  const Rate rates[] = {fabric.rate, config::uplink_rate(fabric), config::core_rate(fabric)};
  const Picos above = fabric.uplink_delay == kNever ? fabric.delay : fabric.uplink_delay;
  const std::uint32_t tiers = shape.cores == 0 ? 2 : 3;
  const std::uint64_t leaf_up = std::uint64_t{shape.spines} * shape.links_per_pair;
  const std::uint64_t spine_up = shape.cores / shape.spines;
  for (std::uint32_t t = 0; t < tiers; ++t) {
    if (rates[t].bps % 1'000'000'000 != 0) return refuse("a rate is not a whole number of Gb/s");
  }
  for (const Picos delay : {fabric.delay, above}) {
    if (delay.count % 1000 != 0) return refuse("a delay is not a whole number of nanoseconds");
  }
  out.value = fmt::format("Nodes {}\nTiers {}\nPodsize {}\n", shape.endpoints(), tiers,
                          shape.endpoints() / shape.pods);
  const std::uint64_t down[] = {shape.hosts_per_leaf, shape.leaves, shape.pods};
  const std::uint64_t bundle[] = {1, shape.links_per_pair, 1};
  const std::uint64_t up[] = {leaf_up, spine_up};
  for (std::uint32_t t = 0; t < tiers; ++t) {
    out.value += fmt::format("\nTier {}\nDownlink_speed_Gbps {}\nRadix_Down {}\n", t,
                             rates[t].bps / 1'000'000'000, down[t] * bundle[t]);
    out.value += fmt::format("Downlink_Latency_ns {}\nSwitch_Latency_ns 0\nBundle {}\n",
                             (t == 0 ? fabric.delay : above).count / 1000, bundle[t]);
    if (t + 1 == tiers) break;
    const std::uint64_t from = down[t] * bundle[t] * rates[t].bps;
    const std::uint64_t to = up[t] * rates[t + 1].bps;
    out.value += fmt::format("Radix_Up {}\nOversubscribed {}\n", up[t], from / to);
  }
  // Its loader derives the switches from the ratio, which is a whole number.
  const config::Read<HtsimTopology> again = parse_htsim_topology(out.value, "written");
  if (!again.ok() || again.value.spines != shape.pods * shape.spines ||
      again.value.cores != shape.cores) {
    out.value.clear();
    return refuse("its oversubscription is a whole number, for every tier");
  }
  return out;
}

}  // namespace paceline::workload
