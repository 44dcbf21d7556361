// How many ranks send to a rank at the same time, which congestion control may be told.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

// By transfer: how many ranks of other servers send to its receiver in the same step, which is the
// longest chain of transfers that it waits for. 0, not known: the transfer stays within a server,
// or the operation is `pipelined`, so that its steps take place at the same time, and other steps
// have other senders. `servers`: of each rank of the schedule.
std::vector<std::uint16_t> sender_degrees(const Schedule& schedule,
                                          std::span<const std::uint32_t> servers, bool pipelined);

}  // namespace paceline::workload
