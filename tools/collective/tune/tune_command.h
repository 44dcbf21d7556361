// `paceline collective tune` and `paceline collective explain`.
#pragma once

#include "dataplane/config/command/command.h"

namespace paceline::tools {

void add_collective_tune(const config::Command& parent, int& exit_code);
void add_collective_explain(const config::Command& parent, int& exit_code);

}  // namespace paceline::tools
