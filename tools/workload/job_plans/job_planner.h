// Makes the messages of a job; see plan_job.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/workload/job_plans/collective_calls.h"
#include "tools/workload/job_plans/job_plan.h"

namespace paceline::workload {

class JobPlanner {
 public:
  // All arguments must outlive this.
  JobPlanner(const Job& job, std::span<const std::uint32_t> servers,
             const CollectiveSettings& settings, std::uint64_t most)
      : job_(job), servers_(servers), settings_(settings), most_(most) {}

  config::Read<JobPlan> plan();

 private:
  void add_heads();
  void match_messages();
  void add_receive(std::uint32_t receive, std::uint32_t send);
  void add_calls();
  void add_waits();
  void check_ends();
  std::uint32_t owner_of(std::uint32_t message) const;

  const Job& job_;
  std::span<const std::uint32_t> servers_;
  const CollectiveSettings& settings_;
  std::uint64_t most_;
  JobPlan out_;
  std::vector<std::string> errors_;
  std::vector<CollectiveCall> calls_;
  std::vector<std::uint32_t> first_of_call_;  // message, ascending
};

}  // namespace paceline::workload
