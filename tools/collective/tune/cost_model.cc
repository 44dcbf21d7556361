#include "tools/collective/tune/cost_model.h"

#include <algorithm>
#include <utility>

namespace paceline::tools {

namespace {

constexpr double kWorthAnotherChunk = 0.99;

}  // namespace

const std::vector<CostModel::Known>& CostModel::schedules_of(workload::CollectiveOp op) {
  const auto [at, added] = known_.try_emplace(op);
  if (!added) return at->second;
  const config::JobConfig& job = group_.scenario.workload.job;
  for (const std::string_view name : workload::schedule_names(op)) {
    // With one rank per server they are the same as "ring".
    const bool by_server = name == "two_level_ring" || name == "rail_rings";
    if (by_server && group_.shape.per_server == 1) continue;
    auto made = workload::make_schedule(op, name, group_.shape,
                                        {.aggregation = job.aggregation, .window = job.peers});
    if (!made.ok()) continue;
    const PlacedSchedule placed = place_schedule(made.value, group_.nics, group_.servers);
    at->second.push_back(
        {std::string(name), std::move(made.value), ScheduleCost(placed, load_.ports(placed))});
  }
  return at->second;
}

Estimate CostModel::estimate(const Known& known, std::uint64_t bytes, std::uint32_t chunk) const {
  const config::JobConfig& job = group_.scenario.workload.job;
  const PartCut cut{bytes, workload::parts_of(known.schedule, bytes, chunk),
                    std::uint64_t{job.channels} * job.window};
  return {known.name,
          chunk,
          known.cost.estimate(cut, cost_),
          known.cost.rounds(),
          known.cost.network_rounds(),
          known.cost.port_share()};
}

std::vector<Estimate> CostModel::estimates(workload::CollectiveOp op, std::uint64_t bytes,
                                           std::span<const std::uint32_t> chunks) {
  std::vector<Estimate> out;
  for (const Known& known : schedules_of(op)) {
    Estimate best = estimate(known, bytes, group_.scenario.workload.job.chunk_bytes);
    for (const std::uint32_t chunk : chunks) {
      Estimate other = estimate(known, bytes, chunk);
      if (other.cost.total() < best.cost.total() * kWorthAnotherChunk) best = std::move(other);
    }
    out.push_back(std::move(best));
  }
  std::stable_sort(out.begin(), out.end(), [](const Estimate& a, const Estimate& b) {
    return a.cost.total() < b.cost.total();
  });
  return out;
}

}  // namespace paceline::tools
