// Jobs to plan, and what waits for what in a plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tools/workload/job_plans/job_plan.h"

namespace paceline::workload::job_plan_samples {

inline constexpr std::uint32_t kClearToSendBit = 1U << 31;  // of a lane

inline bool is_clear_to_send(const PlannedMessage& m) { return (m.lane & kClearToSendBit) != 0; }

// Servers of `per_server` ranks each.
inline std::vector<std::uint32_t> servers_of(std::uint32_t ranks, std::uint32_t per_server) {
  std::vector<std::uint32_t> servers;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) servers.push_back(rank / per_server);
  return servers;
}

// A job without ops whose one group has all ranks.
inline Job job_of_all(std::uint32_t ranks) {
  Job job;
  job.ranks = ranks;
  job.groups.emplace_back(ranks);
  std::iota(job.groups[0].begin(), job.groups[0].end(), 0U);
  return job;
}

// The same collective of all ranks, `calls` times, each rank's one after the other.
inline Job job_of_calls(CollectiveOp op, std::uint32_t ranks, std::uint64_t bytes,
                        std::uint32_t calls) {
  Job job = job_of_all(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t call = 0; call < calls; ++call) {
      const auto id = static_cast<std::uint32_t>(job.ops.size());
      if (call > 0) job.waits.emplace_back(id, id - 1);
      job.ops.push_back({.kind = JobOpKind::collective, .rank = rank, .op = op, .bytes = bytes});
    }
  }
  return job;
}

inline CollectiveSettings settings_with(CollectiveOp op, std::string_view algorithm) {
  CollectiveSettings settings;
  settings.algorithms[static_cast<std::size_t>(op)] = algorithm;
  return settings;
}

// What must have ended before a message begins.
class GraphOrder {
 public:
  explicit GraphOrder(const MessagePlan& plan) : before_(plan.messages.size()) {
    for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
      if (plan.messages[id].after != kNoMessage) before_[id].push_back(plan.messages[id].after);
    }
    for (const Join& join : plan.joins) before_[join.message].push_back(join.after);
  }

  // By message.
  std::vector<bool> all_before(std::uint32_t id) const {
    std::vector<bool> found(before_.size());
    std::vector<std::uint32_t> open{id};
    while (!open.empty()) {
      const std::uint32_t at = open.back();
      open.pop_back();
      for (const std::uint32_t before : before_[at]) {
        if (!found[before]) open.push_back(before);
        found[before] = true;
      }
    }
    return found;
  }

 private:
  std::vector<std::vector<std::uint32_t>> before_;
};

}  // namespace paceline::workload::job_plan_samples
