#pragma once

#include "dataplane/config/command/command.h"
#include "tools/diagnose/watch_testbed.h"

namespace paceline::tools {

// `diagnose` and `faults`. `watch`: for `diagnose --testbed`.
void add_diagnose_command(const config::Command& app, int& exit_code, const WatchTestbed& watch);

}  // namespace paceline::tools
