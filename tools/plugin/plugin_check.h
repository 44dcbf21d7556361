// Checks of `paceline cc check`: small runs of a plug-in in virtual time, and the cost of an event.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cc/interface/algorithm.h"
#include "cc/plugin/plugin.h"

namespace paceline::tools {

struct CheckResult {
  std::string name;
  std::string problem;  // empty: passed
};

// Every check, in order: that the plug-in touches only the memory that it is given, liveness at the
// defaults and at both ends of every parameter, recovery from loss and from a link that was down,
// determinism, and that no decision had to be corrected. With a receiving half also: that control
// packets may get lost, and that many senders with little are served.
std::vector<CheckResult> check_plugin(const cc::AlgorithmInfo& plugin);

// Runs a plug-in's event functions with their memory between inaccessible pages. Returns the first
// access beyond the memory of a call, or an empty text.
std::string out_of_bounds(const cc::plugin::Plugin& plugin);
// An error for each loaded plug-in that touches other memory: with one in the process, results mean
// nothing.
std::vector<std::string> plugins_out_of_bounds();

// Time per event, of the plug-in and of a built-in, measured in turns.
struct EventCost {
  double plugin_ns = 0;    // median of the turns
  double built_in_ns = 0;  // likewise
  double ratio = 0;        // median of the ratios of neighbouring turns
};
// Cost of a context's event, compared with dcqcn.
EventCost event_cost(const cc::AlgorithmInfo& plugin);
// Cost of a receiving half per round of a port with this many senders, compared with homa.
inline constexpr std::uint32_t kCostSenders = 32;
EventCost round_cost(const cc::AlgorithmInfo& plugin);

}  // namespace paceline::tools
