// Which congestion control an engine runs, and with what values.
#pragma once

#include <vector>

#include "cc/interface/algorithm.h"

namespace paceline::transport {

// One algorithm with its resolved parameter values (ParamSpec order).
struct CcChoice {
  cc::AlgorithmId algorithm = cc::AlgorithmId::fixed;
  std::vector<double> values;
};

struct CcSetup {
  CcChoice primary{};
  CcChoice fallback{};  // reactive; used when primary is proactive
};

}  // namespace paceline::transport
