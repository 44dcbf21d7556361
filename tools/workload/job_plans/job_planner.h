// Makes the messages of a job; see plan_job.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "tools/workload/job_plans/collective_calls.h"
#include "tools/workload/job_plans/job_plan.h"

namespace paceline::workload {

class JobPlanner {
 public:
  // All must outlive this.
  JobPlanner(const Job& job, std::span<const std::uint32_t> servers,
             const CollectiveSettings& settings, std::uint64_t most)
      : job_(job), servers_(servers), settings_(settings), most_(most) {}

  config::Read<JobPlan> plan();

 private:
  // One part of a call: messages from `first` on, one for each transfer of the schedule.
  struct Part {
    std::uint32_t first = 0;
    std::uint32_t channel = 0;
    std::uint64_t bytes = 0;
    std::uint32_t number = 0;  // of `count`
    std::uint32_t count = 1;
  };

  void add_heads();
  void match_messages();
  void add_receive(std::uint32_t receive, std::uint32_t send);
  void add_waits();
  void add_call(std::uint32_t number);
  const Schedule* schedule_of(const CollectiveCall& call);
  void split_unevenly(const CollectiveCall& call, const Schedule& schedule);
  std::uint64_t parts_of_call(const CollectiveCall& call, const Schedule& schedule) const;
  std::uint64_t bytes_of(const Schedule& schedule, std::uint32_t transfer, const Part& part) const;
  void add_part(std::uint32_t number, const Schedule& schedule, const Part& part);
  void add_ends(std::uint32_t number, const Schedule& schedule, const Part& part);
  void check_ends();
  std::uint32_t owner_of(std::uint32_t message) const;

  std::uint32_t add(const PlannedMessage& message);
  std::uint32_t add_join(std::uint32_t rank, std::uint32_t call);
  void wait(std::uint32_t message, std::uint32_t after);
  std::vector<std::uint32_t> servers_of(const std::vector<std::uint32_t>& ranks) const;

  const Job& job_;
  std::span<const std::uint32_t> servers_;
  const CollectiveSettings& settings_;
  std::uint64_t most_;
  JobPlan out_;
  std::vector<std::string> errors_;
  std::vector<CollectiveCall> calls_;
  std::vector<std::uint32_t> first_of_call_;  // message, ascending
  // By operation, ranks and ranks of a server.
  std::map<std::tuple<CollectiveOp, std::uint32_t, std::uint32_t>, Schedule> schedules_;
  bool custom_used_ = false;
  // Of the call that is being made: by channel and part in its window, the ends by rank.
  std::vector<std::vector<std::uint32_t>> gates_;
  std::vector<std::uint16_t> degrees_;  // the same, by transfer: sender_degrees
  std::vector<std::uint64_t> cells_;    // the same: bytes in all parts; none where it is even
};

}  // namespace paceline::workload
