#pragma once

#include <string>

#include "cc/interface/algorithm.h"

namespace paceline::tools {

// Explanations of the short names in the sources of the algorithm's parameters, a line each; only
// names that occur there.
std::string source_legend(const cc::AlgorithmInfo& info);

}  // namespace paceline::tools
