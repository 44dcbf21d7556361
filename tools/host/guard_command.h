#pragma once

#include <CLI/CLI.hpp>

namespace paceline::tools {

void add_guard_command(CLI::App& app, int& exit_code);

}  // namespace paceline::tools
