// What a reader of an analysis must be told about its runs: which did not finish, failed or were
// not done, and where messages were outstanding at the end. One sentence each.
#pragma once

#include <string>
#include <vector>

#include "control/experiment/effects.h"
#include "control/experiment/pairing.h"

namespace paceline::experiment {

// `analysis` has its plan and comparisons.
std::vector<std::string> notes_of(const Analysis& analysis, const RunGrid& grid);

}  // namespace paceline::experiment
