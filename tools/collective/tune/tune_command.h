// `paceline collective tune` and `paceline collective explain`.
#pragma once

#include <CLI/CLI.hpp>

namespace paceline::tools {

void add_collective_tune(CLI::App& parent, int& exit_code);
void add_collective_explain(CLI::App& parent, int& exit_code);

}  // namespace paceline::tools
