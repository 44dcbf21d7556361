// Helpers to build a plan of messages.
#pragma once

#include <cstdint>

#include "dataplane/driver/traffic/message_plan.h"

namespace paceline::workload {

inline constexpr std::uint32_t kNoCall = 0xFFFF'FFFF;  // PlannedMessage::collective

// A computation of the rank, for this long; `call` as in PlannedMessage::collective.
PlannedMessage compute_message(std::uint32_t rank, Picos duration, std::uint32_t call);

// Returns the message's number.
std::uint32_t add_message(MessagePlan& plan, const PlannedMessage& message);

// A message that takes no time, at which a rank has several others behind it.
std::uint32_t add_join(MessagePlan& plan, std::uint32_t rank, std::uint32_t call);

// `message` begins when `after` and its earlier dependencies have ended.
void add_wait(MessagePlan& plan, std::uint32_t message, std::uint32_t after);

}  // namespace paceline::workload
