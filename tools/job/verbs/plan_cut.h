// Cuts the plan of a job into the parts of its ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "tools/collective/rank/plan/plan_part.h"

namespace paceline::tools {

// The most bytes that a rank may receive in all if every message has its own memory.
inline constexpr std::uint64_t kMostReceivedBytes = std::uint64_t{1} << 30;

// One more than the highest NIC that a message names.
std::uint32_t plan_nics(const MessagePlan& plan);

// Returns the parts by NIC. `data`: every message has its own memory at its receiver and a pattern
// that is checked; else the messages of a receiver share memory. Errors: messages that cannot be
// sent, too little memory.
config::Read<std::vector<rank::PlanPart>> cut_plan(const MessagePlan& plan, bool data);

}  // namespace paceline::tools
