// Runs a scenario in virtual time and collects what the edge of its fabric knows.
#pragma once

#include <cstdint>

#include "control/diagnosis/evidence.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

struct ObservedRun {
  ScenarioRun run;
  diagnosis::Evidence evidence;
};

// Like run_scenario(); sets `control.sample` and `control.finished`.
ObservedRun observe_scenario(const PreparedScenario& prepared, std::uint64_t seed,
                             RunControl control);

}  // namespace paceline::tools
