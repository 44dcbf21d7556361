// A scenario's fabric in the formats of others.
#pragma once

#include <string>

#include "dataplane/config/scenario.h"
#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/fabric/topology/fabric_spec.h"

namespace paceline::tools {

// The keys of [fabric] that make a regular topology, as TOML.
std::string fabric_keys_text(const config::FabricConfig& fabric);

// Errors: what the format cannot express.
config::Read<std::string> export_hpcc(const fabric::FabricSpec& spec);
// With an NVLink switch for each server, with the rate and the delay of SimAI's own generator.
config::Read<std::string> export_simai(const config::FabricConfig& fabric,
                                       const fabric::FabricSpec& spec);

}  // namespace paceline::tools
