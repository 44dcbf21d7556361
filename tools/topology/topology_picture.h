// A fabric as a picture (SVG): a row for every tier, hosts at the bottom.
#pragma once

#include <string>

#include "dataplane/fabric/topology/fabric_spec.h"

namespace paceline::tools {

// Where a tier has more nodes than kMostDrawn, a box stands for several and says how many. Links
// between the same two boxes are one line, wider for more; the colour is the port of the NIC, or
// that of the plane.
inline constexpr std::uint32_t kMostDrawn = 64;
std::string topology_svg(const std::string& name, const fabric::FabricSpec& spec);

}  // namespace paceline::tools
