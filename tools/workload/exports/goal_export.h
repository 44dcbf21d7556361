// A plan as a schedule in GOAL text.
//
// Labels: s3 sends message 3, r3 receives it, c3 is computing or a join (calc 0), g3 the gap before
// message 3; b1, b2 ... are times at which messages begin, a chain of calcs on cpu 0. Every message
// of a pair of ranks has a tag of its own. Times are rounded to nanoseconds. Queue pairs are left
// out.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/traffic/message_plan.h"

namespace paceline::workload {

// The hosts of the plan are the ranks. Error: a rank computes more at once than GOAL has cpus.
config::Read<std::string> write_goal_plan(const MessagePlan& plan, std::uint32_t ranks);

}  // namespace paceline::workload
