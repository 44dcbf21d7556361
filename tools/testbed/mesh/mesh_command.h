// `paceline mesh`: probes between all NICs of running testbeds, or of a fleet.
#pragma once

#include <CLI/CLI.hpp>

namespace paceline::tools {

void add_mesh_command(CLI::App& app, int& exit_code);

}  // namespace paceline::tools
