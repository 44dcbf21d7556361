// A plan as a flow list of the HPCC simulator, which knows neither waits nor computing.
#pragma once

#include <string>

#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "tools/workload/exports/plan_order.h"
#include "tools/workload/files/hpcc_format.h"

namespace paceline::workload {

// The hosts of the plan are ranks. Flows by their start. Errors: waits and computing, unless they
// are to be dropped; messages without bytes.
config::Read<std::string> write_flow_plan(const MessagePlan& plan, const NodeNumbers& numbers,
                                          const PlanDrops& drops);

}  // namespace paceline::workload
