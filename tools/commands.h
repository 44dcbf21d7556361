#pragma once

#include <CLI/CLI.hpp>

namespace paceline::tools {

// Every command of `paceline`. A callback stores its exit code in `exit_code`.
void add_commands(CLI::App& app, int& exit_code);

}  // namespace paceline::tools
