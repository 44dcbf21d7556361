// What `paceline cc check` asks of a plug-in: small runs in virtual time, and what an event costs.
#pragma once

#include <string>
#include <vector>

#include "cc/algorithm.h"

namespace paceline::tools {

struct CheckResult {
  std::string name;
  std::string problem;  // empty: passed
};

// Every check, in order: liveness at the defaults and at both ends of every parameter, recovery
// from loss and from a link that was down, determinism, and that no decision had to be mended.
std::vector<CheckResult> check_plugin(const cc::AlgorithmInfo& plugin);

// Time per event, of the plug-in and of the built-in dcqcn, measured in turns.
struct EventCost {
  double plugin_ns = 0;    // median of the turns
  double built_in_ns = 0;  // likewise
  double ratio = 0;        // median of the ratios of neighbouring turns
};
EventCost event_cost(const cc::AlgorithmInfo& plugin);

}  // namespace paceline::tools
