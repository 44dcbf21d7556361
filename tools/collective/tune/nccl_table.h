// Choices of a tuner as the table that NCCL's example tuner plug-in reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/workload/schedules/schedule.h"

namespace paceline::tools {

struct CollectiveTunePlan;
struct TuneCell;

// NCCL's name of an operation, empty where its tuner does not have it.
std::string_view nccl_collective(workload::CollectiveOp op);
// NCCL's name of the algorithm of a schedule, empty if NCCL does not have it. In servers with
// several GPUs NCCL's rings leave by several NICs, and it has no PAT.
std::string_view nccl_algorithm(workload::CollectiveOp op, std::string_view schedule,
                                const workload::GroupShape& shape);

// A line for each run of sizes with the same choice. The ranges of an operation touch and cover all
// sizes; two neighbouring sizes part at their geometric mean.
std::string nccl_table(const CollectiveTunePlan& plan, const std::vector<TuneCell>& cells);

}  // namespace paceline::tools
