#include "tools/workload/job_plans/job_plan.h"

#include <algorithm>

namespace paceline::workload {

namespace {

// The most blocks that one transfer moves.
std::uint32_t largest_transfer(const Schedule& schedule) {
  std::uint32_t most = 1;
  for (const Transfer& t : schedule.transfers) {
    if (t.from != t.to) most = std::max(most, t.pieces);
  }
  return most;
}

}  // namespace

GroupShape group_shape(std::span<const std::uint32_t> servers) {
  const auto n = static_cast<std::uint32_t>(servers.size());
  std::uint32_t run = 1;
  while (run < n && servers[run] == servers[0]) ++run;
  if (n % run != 0) return {n, 1};
  for (std::uint32_t i = 1; i < n; ++i) {
    const bool begins = i % run == 0;
    if (begins == (servers[i] == servers[i - 1])) return {n, 1};
  }
  return {n, run};
}

std::uint64_t parts_of(const Schedule& schedule, std::uint64_t bytes, std::uint64_t chunk_bytes) {
  const std::uint64_t block = std::max<std::uint64_t>(1, chunk_bytes / largest_transfer(schedule));
  const std::uint64_t part_bytes = block * schedule.blocks;
  return (bytes + part_bytes - 1) / part_bytes;
}

std::vector<OpPair> waits_of(const MessagePlan& plan) {
  std::vector<OpPair> waits;
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const std::uint32_t after = plan.messages[id].after;
    if (after != kNoMessage) waits.emplace_back(id, after);
  }
  for (const Join& join : plan.joins) waits.emplace_back(join.message, join.after);
  sort_once(waits);
  return waits;
}

}  // namespace paceline::workload
