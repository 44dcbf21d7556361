#pragma once

#include <CLI/CLI.hpp>

#include "tools/diagnose/watch_testbed.h"

namespace paceline::tools {

// `diagnose` and `faults`. `watch`: for `diagnose --testbed`.
void add_diagnose_command(CLI::App& app, int& exit_code, const WatchTestbed& watch);

}  // namespace paceline::tools
