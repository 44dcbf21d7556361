#include "tools/workload/training/training_groups.h"

#include "tools/workload/models/rank_groups.h"

namespace paceline::workload {

TrainingGroups::TrainingGroups(const Parallelism& by, Job& job) {
  const std::uint64_t data_stride = std::uint64_t{by.tensor} * by.context;
  const RankDigit context{by.tensor, by.context};
  const RankDigit expert{data_stride, by.expert};
  const RankDigit replicas{data_stride * by.expert, by.data / by.expert};
  const std::array<RankDigits, kTrainingGroups> digits{
      RankDigits{{1, by.tensor}},
      RankDigits{context},
      RankDigits{context, {data_stride, by.data}},
      RankDigits{expert},
      RankDigits{context, replicas},
  };
  for (std::size_t kind = 0; kind < kTrainingGroups; ++kind) {
    group_of_[kind] = append_groups(groups_of_ranks(job.ranks, digits[kind]), job.groups);
  }
}

}  // namespace paceline::workload
