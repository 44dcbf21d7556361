// Cuts the plan of a job into the parts of its ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "tools/collective/rank/plan/plan_part.h"

namespace paceline::tools {

// What a rank may receive in all where every message has its own memory.
inline constexpr std::uint64_t kMostReceivedBytes = std::uint64_t{1} << 30;

// One more than the highest NIC that a message names.
std::uint32_t plan_nics(const MessagePlan& plan);

// By NIC. `data`: every message has its own memory at its receiver and a pattern that is checked;
// else the messages of a receiver share memory. Errors: what cannot be sent, memory that does not
// suffice.
config::Read<std::vector<rank::PlanPart>> cut_plan(const MessagePlan& plan, bool data);

}  // namespace paceline::tools
