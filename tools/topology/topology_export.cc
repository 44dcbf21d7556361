#include "tools/topology/topology_export.h"

#include <fmt/format.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "dataplane/config/toml/quantity.h"
#include "tools/workload/files/hpcc_format.h"

namespace paceline::tools {

namespace {

constexpr const char* kNvLink = "2880Gbps 0.000025ms 0";

// "400Gbps".
std::string rate_of(Rate rate) {
  std::string text = config::format_rate(rate);
  return text.replace(text.find("b/s"), 3, "bps");
}

// "0.0005ms", exactly.
std::string millis(Picos delay) {
  std::string text =
      fmt::format("{}.{:09}", delay.count / 1'000'000'000, delay.count % 1'000'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + "ms";
}

}  // namespace

std::string fabric_keys_text(const config::FabricConfig& f) {
  std::string out = fmt::format("[fabric]\ntopology = \"{}\"\n", f.topology);
  const auto add = [&out](const char* key, const std::string& value) {
    out += fmt::format("{} = {}\n", key, value);
  };
  const auto count = [&add](const char* key, std::uint32_t value) {
    add(key, std::to_string(value));
  };
  const auto text = [&add](const char* key, const std::string& value) {
    add(key, '"' + value + '"');
  };
  const bool tree = f.topology == "fat_tree";
  if (f.topology == "star" || f.topology == "dumbbell") count("hosts", f.hosts);
  if (f.nics != 1) count("nics", f.nics);
  if (f.ports != 1) count("ports", f.ports);
  if (f.planes != "own") text("planes", f.planes);
  if (f.topology == "rail") count("servers", f.servers);
  if (tree && f.k != 0) {
    count("k", f.k);
  } else if (f.topology != "star" && f.topology != "dumbbell") {
    if (tree) count("pods", f.pods);
    if (f.topology != "rail") count("leaves", f.leaves);
    count("spines", f.spines);
    if (f.topology != "leaf_spine") count("cores", f.cores);
    count("hosts_per_leaf", f.hosts_per_leaf);
  }
  if (f.links_per_pair != 1) count("links_per_pair", f.links_per_pair);
  text("rate", config::format_rate(f.rate));
  if (f.uplink_rate.bps != 0) text("uplink_rate", config::format_rate(f.uplink_rate));
  if (f.core_rate.bps != 0) text("core_rate", config::format_rate(f.core_rate));
  text("delay", config::format_time(f.delay));
  if (f.uplink_delay != kNever) text("uplink_delay", config::format_time(f.uplink_delay));
  if (f.oversubscription != 0) add("oversubscription", fmt::format("{}", f.oversubscription));
  return out;
}

config::Read<std::string> export_hpcc(const fabric::FabricSpec& spec) {
  if (spec.ports != 1) {
    return {{},
            {"the format of the HPCC simulator cannot express this fabric: a host has one link "
             "there"}};
  }
  std::vector<std::uint32_t> hosts(spec.hosts);
  std::vector<std::uint32_t> switches(spec.switches);
  std::iota(hosts.begin(), hosts.end(), 0U);
  std::iota(switches.begin(), switches.end(), spec.hosts);
  workload::HpccTopology topology;
  topology.numbers = workload::NodeNumbers(std::move(hosts), std::move(switches));
  for (const fabric::LinkSpec& link : spec.links) {
    topology.links.push_back({link.a, link.b, link.rate, link.delay, link.error_rate});
  }
  return {workload::write_hpcc_topology(topology), {}};
}

config::Read<std::string> export_simai(const config::FabricConfig& fabric,
                                       const fabric::FabricSpec& spec) {
  const std::uint32_t nics = spec.nics();
  const std::uint32_t servers = nics / fabric.nics;
  const std::uint32_t nodes = nics + servers + spec.switches;
  // GPUs server by server, NVLink switches, switches.
  const auto id = [&](std::uint32_t node) {
    if (node >= spec.hosts) return node - spec.hosts + nics + servers;
    const std::uint32_t nic = node % nics;
    return nic % servers * fabric.nics + nic / servers;
  };
  std::string out = fmt::format("{} {} {} {} {} NONE\n", nodes, fabric.nics, servers, spec.switches,
                                spec.links.size() + nics);
  for (std::uint32_t i = nics; i < nodes; ++i) out += fmt::format("{} ", i);
  out += '\n';
  // A GPU's lines: NVLink, then its ports in their order.
  std::vector<std::string> of_gpu(nics);
  std::string others;
  for (const fabric::LinkSpec& link : spec.links) {
    const bool turned = link.b < spec.hosts;
    const std::uint32_t a = id(turned ? link.b : link.a);
    const std::uint32_t b = id(turned ? link.a : link.b);
    const std::string line = fmt::format("{} {} {} {} {}\n", a, b, rate_of(link.rate),
                                         millis(link.delay), link.error_rate);
    (a < nics ? of_gpu[a] : others) += line;
  }
  for (std::uint32_t gpu = 0; gpu < nics; ++gpu) {
    out += fmt::format("{} {} {}\n", gpu, nics + gpu / fabric.nics, kNvLink) + of_gpu[gpu];
  }
  return {out + others, {}};
}

}  // namespace paceline::tools
