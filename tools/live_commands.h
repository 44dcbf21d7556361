#pragma once

#include "dataplane/config/command/command.h"

namespace paceline::tools {

// The commands that need a service, a daemon or a port. A build of the emulator alone
// (PACELINE_EMULATOR_ONLY) has their names, and what to build for them.
void add_live_commands(const config::Command& app, int& exit_code);

}  // namespace paceline::tools
