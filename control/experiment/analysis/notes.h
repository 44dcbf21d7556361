// Notes for the reader of an analysis: runs that did not finish, failed or were not done, and runs
// with messages outstanding at the end. One sentence each.
#pragma once

#include <string>
#include <vector>

#include "control/experiment/analysis/effects.h"
#include "control/experiment/analysis/pairing.h"

namespace paceline::experiment {

// `analysis` has its plan and comparisons.
std::vector<std::string> notes_of(const Analysis& analysis, const RunGrid& grid);

}  // namespace paceline::experiment
