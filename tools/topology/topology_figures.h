// The figures of a fabric that need no run: nodes and links of every tier, capacity, paths.
// paths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "tools/workload/files/topology_file.h"

namespace paceline::tools {

// Hosts are tier 0; a switch's tier is its distance from the nearest host.
struct TierFigures {
  std::string name;
  std::uint64_t nodes = 0;
  double oversubscription = 0;  // of the worst switch: capacity down over capacity up; 0: no up
};

struct LinkFigures {
  std::uint32_t lower = 0;  // tiers
  std::uint32_t upper = 0;
  Rate rate{};
  std::uint64_t count = 0;
};

struct TopologyFigures {
  std::uint32_t servers = 0;
  std::uint32_t nics = 0;
  std::uint32_t ports = 1;   // of a NIC
  std::uint32_t planes = 1;  // fabrics that ports of one index have for themselves
  std::vector<TierFigures> tiers;
  std::vector<LinkFigures> links;
  double bisection_bps = 0;  // 0: some do not reach each other
  // Equally short paths of a port to the same port of another NIC.
  std::uint64_t least_paths = 0;
  std::uint64_t most_paths = 0;
  Picos longest_round_trip{};
  std::uint64_t unreachable_pairs = 0;  // of NICs
  std::string unreachable_example;      // both ends' names
};

// The tier of every node, ports of hosts first; kNoTier: no host reaches it.
inline constexpr std::uint32_t kNoTier = 0xFFFF'FFFF;
std::vector<std::uint32_t> tiers_of(const fabric::FabricSpec& spec);
std::string tier_name(std::uint32_t tier);

// `scenario`: its topology file, if any, has been read. `spec`: its fabric, which is buildable.
TopologyFigures topology_figures(const config::Scenario& scenario, const fabric::FabricSpec& spec,
                                 const workload::NodeNumbers& numbers);

std::string topology_text(const std::string& name, const TopologyFigures& figures);
nlohmann::json topology_json(const std::string& name, const TopologyFigures& figures);

}  // namespace paceline::tools
