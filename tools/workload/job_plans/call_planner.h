// The messages of the collectives of a job, call by call; see plan_job.
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

class CallPlanner {
 public:
  // All arguments must outlive this. `out` has the message of every op of the job, by the number of
  // the op.
  CallPlanner(const Job& job, std::span<const std::uint32_t> servers,
              const CollectiveSettings& settings, std::uint64_t most, JobPlan& out)
      : job_(job), servers_(servers), settings_(settings), most_(most), out_(out) {}

  // Adds the next call, its messages and the ends of its ops. Returns errors; there is no plan
  // then.
  std::vector<std::string> add(const CollectiveCall& call);

  // Whether settings.custom has served a call.
  bool custom_used() const { return custom_used_; }

 private:
  // One part of a call: messages from `first` on, one for each transfer of the schedule.
  struct Part {
    std::uint32_t first = 0;
    std::uint32_t channel = 0;
    std::uint64_t bytes = 0;
    std::uint32_t number = 0;  // of `count`
    std::uint32_t count = 1;
  };

  // The arguments of sender_degrees(). Servers matter only by which ranks share one.
  using DegreesKey = std::tuple<const Schedule*, bool, std::vector<std::uint32_t>>;

  const Schedule* schedule_of(const CollectiveCall& call);
  const std::vector<std::uint16_t>& degrees_of(const Schedule& schedule, bool pipelined);
  void split_unevenly(const CollectiveCall& call, const Schedule& schedule);
  std::uint64_t parts_of_call(const CollectiveCall& call, const Schedule& schedule) const;
  std::uint64_t bytes_of(const Schedule& schedule, std::uint32_t transfer, const Part& part) const;
  void add_part(const Schedule& schedule, const std::vector<std::uint16_t>& degrees,
                const Part& part);
  void add_ends(const Schedule& schedule, const Part& part);
  std::vector<std::uint32_t> servers_of_ranks() const;

  const Job& job_;
  std::span<const std::uint32_t> servers_;
  const CollectiveSettings& settings_;
  std::uint64_t most_;
  JobPlan& out_;
  std::vector<std::string> errors_;
  // By operation, ranks and ranks of a server.
  std::map<std::tuple<CollectiveOp, std::uint32_t, std::uint32_t>, Schedule> schedules_;
  std::map<DegreesKey, std::vector<std::uint16_t>> degrees_;  // by transfer
  bool custom_used_ = false;
  // The call that is being planned: its number and ranks; by channel and part in its window, the
  // ends by rank; bytes of transfers in all parts, empty if they are even.
  std::uint32_t number_ = 0;
  std::span<const std::uint32_t> ranks_;
  std::vector<std::vector<std::uint32_t>> gates_;
  std::vector<std::uint64_t> cells_;
};

}  // namespace paceline::workload
