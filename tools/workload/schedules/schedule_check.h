// Proves a schedule on symbols, wherever it came from.
#pragma once

#include <cstdint>
#include <string>

#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

// "" when the schedule is well formed and, with its events in an order drawn from the seed, every
// rank ends with the right result; else the first error: which transfer, rank and block. Well
// formed: every number is in range, and a transfer waits only for earlier ones that its sender
// sends or receives. One order proves nothing about another: check several seeds.
std::string check_schedule(const Schedule& schedule, std::uint64_t seed);

}  // namespace paceline::workload
