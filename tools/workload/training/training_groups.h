// The groups of ranks that communicate in training, in Megatron's order of ranks: tensor, then
// context, data and pipeline, the slowest last; experts are shared out over data-parallel ranks,
// place dp mod ep.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/workload/jobs/job.h"
#include "tools/workload/models/training_traffic.h"

namespace paceline::workload {

enum class TrainingGroup : std::uint8_t {
  tensor,
  context,
  data,         // replicas of a weight: data and context ranks
  expert,       // ranks that share the experts out
  expert_data,  // replicas of an expert
};
inline constexpr std::size_t kTrainingGroups = 5;

class TrainingGroups {
 public:
  // Adds the groups to the job.
  TrainingGroups(const Parallelism& by, Job& job);

  std::uint32_t group_of(TrainingGroup kind, std::uint32_t rank) const {
    return group_of_[static_cast<std::size_t>(kind)][rank];
  }

 private:
  std::array<std::vector<std::uint32_t>, kTrainingGroups> group_of_;  // in Job::groups, by rank
};

}  // namespace paceline::workload
