// `paceline tuner status|mode|journal`: the tuner of a running host, through pacelined.
#pragma once

#include "dataplane/config/command/command.h"

namespace paceline::tools {

void add_tuner_host_commands(const config::Command& tuner, int& exit_code);

}  // namespace paceline::tools
