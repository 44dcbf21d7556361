// What a scenario's hosts will send, in the formats of other tools.
#pragma once

#include <string>

#include "dataplane/config/toml/diagnostics.h"
#include "tools/run/scenario_run.h"
#include "tools/workload/exports/plan_order.h"

namespace paceline::tools {

struct PlanExport {
  std::string text;
  std::uint64_t messages = 0;
  double bytes = 0;
  std::uint64_t dropped_waits = 0;  // where the format has some
};

// format: "cm", "goal" or "hpcc". Nodes are the ranks of the scenario under placement "packed", so
// that the file read back there makes the same NICs talk. Errors: what the format cannot express.
config::Read<PlanExport> export_plan(const PreparedScenario& prepared, const std::string& format,
                                     const workload::PlanDrops& drops);

}  // namespace paceline::tools
