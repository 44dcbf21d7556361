// `paceline mesh`: probes between all NICs of running testbeds, or of a fleet.
#pragma once

#include "dataplane/config/command/command.h"

namespace paceline::tools {

void add_mesh_command(const config::Command& app, int& exit_code);

}  // namespace paceline::tools
