// `paceline tuner status|mode|journal`: the tuner of a running host, through pacelined.
#pragma once

#include <CLI/CLI.hpp>

namespace paceline::tools {

void add_tuner_host_commands(CLI::App& tuner, int& exit_code);

}  // namespace paceline::tools
