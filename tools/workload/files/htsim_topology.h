// Topologies of htsim (ultraethernet/uet-htsim, htsim/sim/datacenter/topologies/*.topo).
//
//   Nodes N, Tiers 2|3, Podsize H, then for each tier `Tier t` (0 leaves, 1 spines, 2 cores) and
//   Downlink_speed_Gbps  Radix_Down  Radix_Up  Downlink_Latency_ns  Switch_Latency_ns
//   Oversubscribed  Bundle  Queue_up  Queue_down
//
// Keys in any case, integers, `#` for comments. A link has the speed and the delay of its upper
// end's tier.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/base/units.h"
#include "dataplane/config/scenario.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::workload {

struct HtsimTier {
  Rate down_rate{};
  Picos down_delay{};
  Picos switch_delay{};
  std::uint32_t radix_down = 0;
  std::uint32_t radix_up = 0;  // 0 at the top
  std::uint32_t oversubscribed = 1;
  std::uint32_t bundle = 1;  // parallel links down
  std::uint64_t queue_up = 0;
  std::uint64_t queue_down = 0;
};

struct HtsimTopology {
  std::uint32_t hosts = 0;
  std::uint32_t pods = 1;
  std::uint32_t leaves = 0;  // all
  std::uint32_t spines = 0;  // all
  std::uint32_t cores = 0;
  std::uint32_t tiers = 2;
  std::array<HtsimTier, 3> tier;

  // Without direction.
  std::uint64_t links() const;
};

// Besides the syntax: the numbers of switches are whole and those of the radices.
config::Read<HtsimTopology> parse_htsim_topology(std::string_view text, const std::string& source);

// The same fabric as keys of [fabric]. `error` says what of it they cannot express.
struct FabricFromHtsim {
  config::FabricConfig fabric;
  std::string error;
};
FabricFromHtsim fabric_from_htsim(const HtsimTopology& topology);

// The fabric of a scenario, leaf_spine or fat_tree, as a file of htsim; errors: what that format
// cannot express.
config::Read<std::string> write_htsim_topology(const config::FabricConfig& fabric);

}  // namespace paceline::workload
