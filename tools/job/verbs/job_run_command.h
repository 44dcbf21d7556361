// `paceline job run`.
#pragma once

#include "dataplane/config/command/command.h"

namespace paceline::tools {

void add_job_run(const config::Command& parent, int& exit_code);

}  // namespace paceline::tools
