// The collectives of a job: which op of which rank belongs to which call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"
#include "tools/workload/jobs/job.h"

namespace paceline::workload {

// The k-th collective of all ranks of a group.
struct CollectiveCall {
  std::uint32_t group = 0;  // in Job::groups
  CollectiveOp op = CollectiveOp::all_reduce;
  std::uint64_t bytes = 0;         // of a rank's whole buffer
  std::uint64_t draw = 0;          // as in JobOp
  bool transposed = false;         // as in JobOp
  std::vector<std::uint32_t> ops;  // in Job::ops, by position of the rank in the group
};

// Errors: a rank that calls fewer collectives of a group than another or is not in it, and ranks
// that disagree about the operation, its size or its draw. In the order of their first ops.
config::Read<std::vector<CollectiveCall>> collective_calls(const Job& job);

// "rank 3 (line 12: all_reduce of 4096 B)" for messages.
std::string op_text(const Job& job, std::uint32_t op);

}  // namespace paceline::workload
