#include "tools/collective/tune/collective_tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dataplane/config/server_shape.h"
#include "dataplane/config/toml/quantity.h"
#include "tools/collective/tune/cost_fit.h"
#include "tools/collective/tune/nccl_table.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

namespace {

// The memory of a cell's emulations, in bytes, besides that of its buffer.
constexpr double kCellBase = 512 << 10;

class TuneRun {
 public:
  using ShowShare = std::function<void(double, const std::string&)>;
  TuneRun(const CollectiveTunePlan& plan, const std::atomic<bool>& stop, const ShowShare& show)
      : plan_(plan), stop_(stop), show_(show) {
    for (const std::uint64_t bytes : plan.sizes) all_ += weight(bytes);
    all_ *= static_cast<double>(plan.operations.size());
  }

  config::Read<CollectiveTuneResult> run() {
    show_(0, "latency and bandwidth of the fabric");
    auto cost = fit_cost(plan_.group, stop_);
    if (!cost.ok()) return {{}, std::move(cost.errors)};
    CollectiveTuneResult out{cost.value, {}};
    if (stop_.load()) return {std::move(out), {}};
    CostModel model(plan_.group, cost.value);
    for (const workload::CollectiveOp op : plan_.operations) {
      std::optional<TuneSetting> start;
      std::optional<TuneSetting> nccl_start;
      for (const std::uint64_t bytes : plan_.sizes) {
        TuneCell cell{op, bytes, model.estimates(op, bytes, plan_.space.chunks), {}, {}};
        if (!search(cell, start, nccl_start)) return {std::move(out), {}};
        std::string problem = cell.result.best.problem;
        if (problem.empty() && cell.nccl) problem = cell.nccl->problem;
        if (!problem.empty()) {
          return {
              {},
              {fmt::format("{} of {}: {}", to_string(op), config::format_bytes(bytes), problem)}};
        }
        start = cell.result.best.setting;
        if (cell.nccl) nccl_start = cell.nccl->setting;
        out.cells.push_back(std::move(cell));
        done_ += weight(bytes);
      }
    }
    return {std::move(out), {}};
  }

 private:
  static double weight(std::uint64_t bytes) { return static_cast<double>(bytes) + kCellBase; }

  bool search(TuneCell& cell, const std::optional<TuneSetting>& start,
              const std::optional<TuneSetting>& nccl_start) {
    TrialRunner runner(plan_.group, cell.op, cell.bytes, plan_.iterations, plan_.workers, stop_);
    const std::string what =
        fmt::format("{} {}", to_string(cell.op), config::format_bytes(cell.bytes));
    // Most cells take half of the evaluations that they may.
    const auto shown = [&](std::size_t evaluations) {
      const double share = 2.0 * static_cast<double>(evaluations) / plan_.limits.evaluations;
      show_((done_ + weight(cell.bytes) * std::min(share, 0.95)) / all_, what);
    };
    std::vector<TuneSetting> ranked;
    for (const Estimate& estimate : cell.estimates) {
      ranked.push_back(setting_of(plan_.group.scenario.workload.job, estimate.schedule));
      ranked.back().chunk_bytes = estimate.chunk_bytes;
    }
    auto found = CellSearch(runner, plan_.space, plan_.limits, shown).run(ranked, start);
    if (!found) return false;
    cell.result = std::move(*found);
    if (!plan_.for_nccl) return true;
    std::erase_if(ranked, [&](const TuneSetting& setting) {
      return nccl_algorithm(cell.op, setting.schedule, plan_.group.shape).empty();
    });
    SearchLimits more = plan_.limits;
    more.evaluations += static_cast<std::uint32_t>(runner.emulations());
    const auto nccl = CellSearch(runner, plan_.space, more, shown).run(ranked, nccl_start);
    if (!nccl) return false;
    cell.nccl = nccl->best;
    cell.result.evaluations = nccl->evaluations;
    return true;
  }

  const CollectiveTunePlan& plan_;
  const std::atomic<bool>& stop_;
  const ShowShare& show_;
  double all_ = 0;
  double done_ = 0;
};

}  // namespace

config::Read<TuneGroup> tune_group(const config::Scenario& scenario) {
  auto prepared = prepare(scenario);
  if (!prepared.ok()) return {{}, std::move(prepared.errors)};
  TuneGroup group;
  group.scenario = std::move(prepared.value.scenario);
  const config::ServerShape shape = config::server_shape(group.scenario.fabric);
  if (shape.all_nics() < 2) {
    return {{}, {"fabric.hosts = 1: a collective needs two ranks or more, one a NIC"}};
  }
  group.nics = workload::placement_of(group.scenario, prepared.value.inputs, group.scenario.seed);
  for (const std::uint32_t nic : group.nics) group.servers.push_back(shape.server_of(nic));
  group.shape = workload::group_shape(group.servers);
  return {std::move(group), {}};
}

config::Read<CollectiveTuneResult> run_collective_tune(
    const CollectiveTunePlan& plan, const std::atomic<bool>& stop,
    const std::function<void(double, const std::string&)>& progress) {
  return TuneRun(plan, stop, progress).run();
}

}  // namespace paceline::tools
