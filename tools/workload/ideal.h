// The time a collective cannot beat: what the busiest port must carry, at its rate, plus the base
// latency. Efficiency is this over the measured completion.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "dataplane/base/units.h"
#include "dataplane/driver/message_plan.h"

namespace paceline::workload {

// Bytes on a link that a message of so many payload bytes takes: all its packets with headers.
using WireBytes = std::function<std::uint64_t(std::uint64_t payload_bytes)>;

// max over ports of (wire bytes in or out) / rate, plus base_latency, for one collective of the
// plan. host_rates has an entry per host.
Picos ideal_completion(const MessagePlan& plan, std::uint16_t collective,
                       std::span<const Rate> host_rates, const WireBytes& wire_bytes,
                       Picos base_latency);

// Sets `ideal` of every collective of the plan.
void fill_ideals(MessagePlan& plan, std::span<const Rate> host_rates, const WireBytes& wire_bytes,
                 Picos base_latency);

}  // namespace paceline::workload
