// Bruck's all-gather and PAT: in a step every rank does the same, shifted by its number.
#include <algorithm>
#include <bit>
#include <vector>

#include "tools/workload/schedules/families/families.h"
#include "tools/workload/schedules/schedule_builder.h"

namespace paceline::workload {

namespace {

// A step of an all-gather: rank r sends blocks r + slot to rank r - distance, all modulo the ranks.
struct ShiftStep {
  std::uint32_t distance = 0;
  std::vector<std::uint32_t> slots;
};

// The all-gather of these steps, or the reduce-scatter: the same steps backwards, with every arrow
// reversed. A rank's step waits for what it receives in the step before.
Schedule run_shift_steps(CollectiveOp op, std::uint32_t n, std::vector<ShiftStep> steps) {
  const bool gather = op == CollectiveOp::all_gather;
  if (!gather) std::reverse(steps.begin(), steps.end());
  ScheduleBuilder builder(op, n, n);
  std::vector<std::uint32_t> received(n), before(n);
  for (std::size_t k = 0; k < steps.size(); ++k) {
    for (std::uint32_t r = 0; r < n; ++r) {
      const std::uint32_t near = (r + n - steps[k].distance) % n;
      const std::uint32_t from = gather ? r : near;
      const std::uint32_t to = gather ? near : r;
      received[to] = builder.begin(from, to, !gather);
      for (const std::uint32_t slot : steps[k].slots) builder.add_block((r + slot) % n);
      if (k > 0) builder.wait_for(before[from]);
    }
    std::swap(received, before);
  }
  return builder.finish();
}

std::vector<ShiftStep> bruck_steps(std::uint32_t n) {
  std::vector<ShiftStep> steps;
  for (std::uint32_t distance = 1; distance < n; distance *= 2) {
    ShiftStep& step = steps.emplace_back(ShiftStep{.distance = distance, .slots = {}});
    for (std::uint32_t s = 0; s < std::min(distance, n - distance); ++s) step.slots.push_back(s);
  }
  return steps;
}

// 1 .. below - 1 in NCCL's order: a parent, the half above it, the half below it.
void pat_order(std::uint32_t first, std::uint32_t below, std::vector<std::uint32_t>& order) {
  if (below < 2) return;
  const std::uint32_t half = below / 2;
  order.push_back(first + half);
  pat_order(first + half, half, order);
  pat_order(first, half, order);
}

std::vector<ShiftStep> pat_steps(std::uint32_t n, std::uint32_t aggregation) {
  const std::uint32_t span = std::bit_ceil(n);
  const std::uint32_t most = aggregation == 0 ? span / 2 : std::min(aggregation, span / 2);
  const std::uint32_t rest = span / most;
  std::vector<ShiftStep> steps;
  for (std::uint32_t distance = span / 2; distance >= rest; distance /= 2) {
    ShiftStep& step = steps.emplace_back(ShiftStep{.distance = distance, .slots = {}});
    for (std::uint32_t s = 0; s + distance < n; s += 2 * distance) step.slots.push_back(s);
  }
  std::vector<std::uint32_t> order;
  pat_order(0, rest, order);
  for (const std::uint32_t x : order) {
    if (x >= n) continue;
    ShiftStep& step = steps.emplace_back(ShiftStep{.distance = x & (0 - x), .slots = {}});
    for (std::uint32_t s = x; s < n; s += rest) step.slots.push_back(s - step.distance);
  }
  return steps;
}

}  // namespace

Schedule bruck_all_gather_schedule(const GroupShape& group, const ScheduleOptions&) {
  return run_shift_steps(CollectiveOp::all_gather, group.ranks, bruck_steps(group.ranks));
}

Schedule pat_all_gather_schedule(const GroupShape& group, const ScheduleOptions& options) {
  return run_shift_steps(CollectiveOp::all_gather, group.ranks,
                         pat_steps(group.ranks, options.aggregation));
}

Schedule pat_reduce_scatter_schedule(const GroupShape& group, const ScheduleOptions& options) {
  return run_shift_steps(CollectiveOp::reduce_scatter, group.ranks,
                         pat_steps(group.ranks, options.aggregation));
}

}  // namespace paceline::workload
