#pragma once

#include <string>

#include "cc/algorithm.h"

namespace paceline::tools {

// What the short names in the sources of the algorithm's parameters stand for, a line each; only
// those that occur there.
std::string source_legend(const cc::AlgorithmInfo& info);

}  // namespace paceline::tools
