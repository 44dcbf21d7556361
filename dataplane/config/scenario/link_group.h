// The target of a scenario's event: a link, or all links of a switch, of a plane or of a server,
// which fail and come back together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/scenario.h"

namespace paceline::config {

struct FoundLinks {
  std::vector<std::uint32_t> links;  // of the fabric, ascending
  std::string error;                 // not empty: why there are none
};

// For regular topologies. A link as in find_link; or "leaf3", "spine2", "core1": all links of that
// switch; "plane1": links of the ports with that number and, if the plane is a fabric of its own,
// all others in it; "server2": links of all ports of all its NICs.
FoundLinks find_links(const FabricConfig& fabric, std::string_view name);

}  // namespace paceline::config
