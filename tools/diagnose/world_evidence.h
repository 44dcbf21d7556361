// Runs a scenario in virtual time and collects what can be measured at the edge of its fabric.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "control/diagnosis/evidence.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

// Queues of a switch, which only an emulator sees.
struct SwitchQueues {
  std::uint64_t deepest_bytes = 0;  // of all its queues
  std::uint64_t marked = 0;
};

struct ObservedRun {
  ScenarioRun run;
  std::map<std::string, SwitchQueues> queues;  // by the switch's name; the rules do not see it
  diagnosis::Evidence evidence;
};

// Like run_scenario(); sets `control.sample` and `control.finished`.
ObservedRun observe_scenario(const PreparedScenario& prepared, std::uint64_t seed,
                             RunControl control);

}  // namespace paceline::tools
