#include "tools/collective/tune/cost_model.h"

#include <algorithm>
#include <utility>

namespace paceline::tools {

const std::vector<CostModel::Known>& CostModel::schedules_of(workload::CollectiveOp op) {
  const auto [at, added] = known_.try_emplace(op);
  if (!added) return at->second;
  const config::JobConfig& job = group_.scenario.workload.job;
  for (const std::string_view name : workload::schedule_names(op)) {
    auto made = workload::make_schedule(op, name, group_.shape,
                                        {.aggregation = job.aggregation, .window = job.peers});
    if (!made.ok()) continue;
    const PlacedSchedule placed = place_schedule(made.value, group_.nics, group_.servers);
    at->second.push_back(
        {std::string(name), std::move(made.value), ScheduleCost(placed, load_.ports(placed))});
  }
  return at->second;
}

std::vector<Estimate> CostModel::estimates(workload::CollectiveOp op, std::uint64_t bytes) {
  const config::JobConfig& job = group_.scenario.workload.job;
  std::vector<Estimate> out;
  for (const Known& known : schedules_of(op)) {
    const PartCut cut{bytes, workload::parts_of(known.schedule, bytes, job.chunk_bytes),
                      std::uint64_t{job.channels} * job.window};
    out.push_back({known.name, known.cost.estimate(cut, cost_), known.cost.rounds(),
                   known.cost.network_rounds(), known.cost.port_share()});
  }
  std::stable_sort(out.begin(), out.end(), [](const Estimate& a, const Estimate& b) {
    return a.cost.total() < b.cost.total();
  });
  return out;
}

}  // namespace paceline::tools
