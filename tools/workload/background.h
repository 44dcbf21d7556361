// What ranks and storage exchange beside a job: writing a checkpoint, or reading training data.
#pragma once

#include <cstdint>

#include "dataplane/config/scenario.h"
#include "dataplane/driver/traffic/message_plan.h"

namespace paceline::workload {

// PlannedMessage::job of its messages; those of the job have 0.
inline constexpr std::uint16_t kBackgroundTag = 1;

// Appends the messages, between ranks 0 .. `ranks` - 1 and the storage NICs that follow them, and a
// collective of their own that they belong to. Each rank has its bytes dealt out to all storage
// NICs in turn.
void add_background(const config::BackgroundConfig& background, std::uint32_t ranks,
                    MessagePlan& plan);

// How many messages these are.
std::uint64_t background_messages(const config::BackgroundConfig& background, std::uint32_t ranks);

}  // namespace paceline::workload
