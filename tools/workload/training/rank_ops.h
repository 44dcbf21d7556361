// The ops of one rank, as they are added to a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/workload/jobs/job.h"
#include "tools/workload/training/training_groups.h"

namespace paceline::workload {

// What an op is for. The word before the colon is the kind of parallelism, as training_traffic
// names it.
enum class TrainingUse : std::uint8_t {
  forward,
  backward,
  tensor_attention,
  tensor_feed_forward,
  expert_dispatch,
  expert_combine,
  context_forward,
  context_backward,
  pipeline_forward,
  pipeline_backward,
  data_gradients,
  data_weights,
  expert_data_gradients,
  expert_data_weights,
};

std::vector<std::string> training_use_names();  // Job::names, by TrainingUse

class RankOps {
 public:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  // Both must outlive this.
  RankOps(Job& job, const TrainingGroups& groups, std::uint32_t rank)
      : job_(job), groups_(groups), rank_(rank) {}

  std::uint32_t rank() const { return rank_; }
  // Ranks of its group of a kind.
  std::uint32_t ranks_of(TrainingGroup kind) const {
    return static_cast<std::uint32_t>(ranks_in(kind).size());
  }
  const std::vector<std::uint32_t>& ranks_in(TrainingGroup kind) const {
    return job_.groups[groups_.group_of(kind, rank_)];
  }

  std::uint32_t compute(TrainingUse use, Picos duration);
  std::uint32_t collective(TrainingUse use, TrainingGroup kind, CollectiveOp op,
                           std::uint64_t bytes);
  // An exchange in the expert group; draw and transposed as in JobOp.
  std::uint32_t exchange(TrainingUse use, std::uint64_t bytes, std::uint64_t draw, bool transposed);
  std::uint32_t send(TrainingUse use, std::uint32_t to, std::uint32_t tag, std::uint64_t bytes);
  std::uint32_t receive(TrainingUse use, std::uint32_t from, std::uint32_t tag,
                        std::uint64_t bytes);
  // Does nothing if `before` is kNone.
  void wait(std::uint32_t op, std::uint32_t before);

 private:
  std::uint32_t add(TrainingUse use, JobOp op);

  Job& job_;
  const TrainingGroups& groups_;
  std::uint32_t rank_;
};

}  // namespace paceline::workload
