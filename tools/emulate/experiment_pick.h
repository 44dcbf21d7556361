// One run of an experiment as a scenario of its own, for `paceline emulate --scenario --arm`.
#pragma once

#include <string>

#include "dataplane/config/scenario/scenario_reader.h"
#include "tools/cli/cli.h"

namespace paceline::tools {

// The scenario `scenario` of the experiment file under the arm `arm`. Its seed is --seed, or that
// of the first repetition. All errors are reported; then there is no value to use.
config::Read<config::Scenario> pick_run(const InputOptions& input, const std::string& scenario,
                                        const std::string& arm, config::ReaderOptions options);

}  // namespace paceline::tools
