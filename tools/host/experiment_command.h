// `paceline experiment`, for main().
#pragma once

#include "dataplane/config/command/command.h"

namespace paceline::tools {

void add_experiment_command(const config::Command& app, int& exit_code);

}  // namespace paceline::tools
