#include "tools/workload/training/training_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "tools/workload/jobs/import_limits.h"
#include "tools/workload/training/rank_ops.h"
#include "tools/workload/training/rank_training.h"
#include "tools/workload/training/training_groups.h"

namespace paceline::workload {

namespace {

void add_rank(const TrainingSettings& settings, const TrainingGroups& groups, std::uint32_t rank,
              Job& job) {
  RankOps ops(job, groups, rank);
  RankTraining training(settings, ops);
  for (std::uint32_t i = 0; i < settings.iterations; ++i) training.add_iteration();
}

std::string too_many_ops(std::string_view how_exact, double ops, std::uint32_t ranks) {
  return fmt::format(
      "workload.job.model: {} {:.3g} operations of {} ranks: at most {} fit; merge_layers and "
      "bucket_bytes make fewer",
      how_exact, ops, ranks, kMostJobOps);
}

// A lower bound of a rank's ops: forward and backward, a layer computes twice and has three ops for
// every step around a ring of context ranks.
double fewest_ops(const TrainingSettings& settings) {
  const std::uint32_t layers = settings.model.layers / (settings.by.pipeline * settings.by.chunks);
  const std::uint32_t units = (layers + settings.merge_layers - 1) / settings.merge_layers;
  return 2.0 * settings.iterations * settings.step.micro_batches * settings.by.chunks * units *
         (2 + 3.0 * (settings.by.context - 1));
}

void sort_waits(Job& job) {
  std::sort(job.waits.begin(), job.waits.end());
  job.waits.erase(std::unique(job.waits.begin(), job.waits.end()), job.waits.end());
}

}  // namespace

Job training_of_rank(const TrainingSettings& settings, std::uint32_t rank) {
  Job job;
  job.ranks = static_cast<std::uint32_t>(settings.by.ranks());
  job.names = training_use_names();
  const TrainingGroups groups(settings.by, job);
  add_rank(settings, groups, rank, job);
  sort_waits(job);
  return job;
}

Imported<Job> job_of_training(const TrainingSettings& settings, std::uint32_t ranks) {
  Imported<Job> out;
  out.errors = check_training(settings, ranks);
  if (!out.ok()) return out;
  const double fewest = fewest_ops(settings) * ranks;
  if (fewest > static_cast<double>(kMostJobOps)) {
    out.errors.push_back(too_many_ops("at least", fewest, ranks));
    return out;
  }
  Job& job = out.value;
  job.ranks = ranks;
  job.names = training_use_names();
  const TrainingGroups groups(settings.by, job);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    add_rank(settings, groups, rank, job);
    const std::uint64_t ops = std::uint64_t{ranks} * (job.ops.size() / (rank + 1));
    if (ops <= kMostJobOps) continue;
    out.errors.push_back(too_many_ops("about", static_cast<double>(ops), ranks));
    return out;
  }
  sort_waits(job);
  return out;
}

}  // namespace paceline::workload
