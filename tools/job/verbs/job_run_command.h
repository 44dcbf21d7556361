// `paceline job run`.
#pragma once

#include <CLI/CLI.hpp>

namespace paceline::tools {

void add_job_run(CLI::App& parent, int& exit_code);

}  // namespace paceline::tools
