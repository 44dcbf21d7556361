// Computes the metrics of one run from a finished world.
#pragma once

#include <vector>

#include "control/experiment/detail.h"
#include "control/experiment/run_result.h"
#include "dataplane/driver/virtual/virtual_world.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

experiment::MetricValues measure(const VirtualWorld& world, const std::vector<FlowRow>& flows,
                                 const telemetry::EngineCounters& counters);

// Every message that started and did not fail; one in flight counts with its age.
experiment::Distribution distribution_of(const VirtualWorld& world,
                                         const std::vector<FlowRow>& flows);

}  // namespace paceline::tools
