#include "tools/collective/tune/cost_fit.h"

#include <fmt/format.h>

#include <array>

namespace paceline::tools {

namespace {

// Bytes that each rank passes on at each step.
constexpr std::uint64_t kSmallStep = 1 << 10;
constexpr std::uint64_t kLargeStep = 256 << 10;

// An all-gather by ring, in one part, whose neighbours are in different servers.
config::Read<Trial> run_ring(const TuneGroup& group, std::uint64_t step,
                             const std::atomic<bool>& stop) {
  TuneGroup apart = group;
  config::WorkloadConfig& workload = apart.scenario.workload;
  workload.placement = "spread";
  const TuneSetting setting{"ring", static_cast<std::uint32_t>(step), 1, 1, 1};
  TrialRunner runner(apart, workload::CollectiveOp::all_gather, step * group.shape.ranks, 1, 1,
                     stop);
  const std::vector<Trial> trials = runner.run({&setting, 1});
  if (trials.empty()) return {};
  if (!trials[0].problem.empty()) {
    return {Trial{},
            std::vector<std::string>{fmt::format(
                "ring of {} B a step, to fit the cost of a message: {}", step, trials[0].problem)}};
  }
  return {trials[0], {}};
}

}  // namespace

config::Read<SendCost> fit_cost(const TuneGroup& group, const std::atomic<bool>& stop) {
  const config::FabricConfig& fabric = group.scenario.fabric;
  config::Read<SendCost> out;
  out.value.nvlink_alpha = static_cast<double>(fabric.nvlink_latency.count) * 1e-12;
  out.value.nvlink_beta = 8 / static_cast<double>(fabric.nvlink_rate.bps);
  if (fabric.hosts == fabric.nics) return out;  // one server: nothing is sent between NICs
  std::array<Trial, 2> rings;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    auto ring = run_ring(group, i == 0 ? kSmallStep : kLargeStep, stop);
    if (!ring.ok()) return {{}, std::move(ring.errors)};
    rings[i] = std::move(ring.value);
  }
  // Uses the median message, because one that shares a path with others or crosses a slow link
  // holds up the ring.
  out.value.beta = (rings[1].message_us - rings[0].message_us) * 1e-6 /
                   static_cast<double>(kLargeStep - kSmallStep);
  out.value.alpha = rings[0].took_us * 1e-6 / (group.shape.ranks - 1) -
                    out.value.beta * static_cast<double>(kSmallStep);
  return out;
}

}  // namespace paceline::tools
