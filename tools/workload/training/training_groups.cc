#include "tools/workload/training/training_groups.h"

#include <utility>

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
    GroupTable table = groups_of_ranks(job.ranks, digits[kind]);
    const auto first = static_cast<std::uint32_t>(job.groups.size());
    for (std::uint32_t& group : table.group_of) group += first;
    for (auto& ranks : table.groups) job.groups.push_back(std::move(ranks));
    group_of_[kind] = std::move(table.group_of);
  }
}

}  // namespace paceline::workload
