#pragma once

#include "dataplane/config/command/command.h"

namespace paceline::tools {

// Every command of `paceline`. A callback stores its exit code in `exit_code`.
void add_commands(const config::Command& app, int& exit_code);

}  // namespace paceline::tools
