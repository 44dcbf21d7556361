// The results of hosts that probe each other in a scenario with [probing], printed and written.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "dataplane/driver/virtual/world_probes.h"

namespace paceline::tools {

// For people.
std::string probe_text(const ProbeReport& report);
// For machines: totals, and every pair of hosts.
nlohmann::ordered_json probe_json(const ProbeReport& report);

}  // namespace paceline::tools
