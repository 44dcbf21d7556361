// Schedules and settings of collectives for one fabric: a search for each operation and size.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"
#include "tools/collective/tune/cell_search.h"
#include "tools/collective/tune/cost_model.h"

namespace paceline::tools {

struct CollectiveTunePlan {
  TuneGroup group;
  std::vector<workload::CollectiveOp> operations;
  std::vector<std::uint64_t> sizes;  // ascending
  std::uint32_t iterations = 2;      // counted of each emulation; one before them is not
  Workers workers{};
  bool for_nccl = false;  // also the best of the schedules that NCCL has
  TuneSpace space;
  SearchLimits limits;
};

struct TuneCell {
  workload::CollectiveOp op = workload::CollectiveOp::all_reduce;
  std::uint64_t bytes = 0;
  std::vector<Estimate> estimates;  // the lowest first
  CellResult result;
  std::optional<Trial> nccl;  // the best of the schedules that NCCL has, if asked for
};

struct CollectiveTuneResult {
  SendCost cost;
  std::vector<TuneCell> cells;  // by operation, then size
};

// The ranks of a scenario of kind "job" on their NICs. Errors: files that it names, fewer than two
// ranks.
config::Read<TuneGroup> tune_group(const config::Scenario& scenario);

// progress: the finished share, and the current work. Errors: a fabric on which no collective runs.
// The result is incomplete once `stop` is set.
config::Read<CollectiveTuneResult> run_collective_tune(
    const CollectiveTunePlan& plan, const std::atomic<bool>& stop,
    const std::function<void(double, const std::string&)>& progress);

}  // namespace paceline::tools
