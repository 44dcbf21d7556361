#include "tools/workload/training/rank_ops.h"

namespace paceline::workload {

std::vector<std::string> training_use_names() {
  return {
      "forward",
      "backward",
      "tensor: attention",
      "tensor: feed-forward",
      "expert: dispatch",
      "expert: combine",
      "context: keys and values",
      "context: keys, values and gradients",
      "pipeline: activations",
      "pipeline: gradients",
      "data: gradients",
      "data: weights",
      "expert data: gradients",
      "expert data: weights",
  };
}

std::uint32_t RankOps::add(TrainingUse use, JobOp op) {
  op.rank = rank_;
  op.name = static_cast<std::uint32_t>(use);
  job_.ops.push_back(op);
  return static_cast<std::uint32_t>(job_.ops.size() - 1);
}

std::uint32_t RankOps::compute(TrainingUse use, Picos duration) {
  return add(use, {.duration = duration});
}

std::uint32_t RankOps::collective(TrainingUse use, TrainingGroup kind, CollectiveOp op,
                                  std::uint64_t bytes) {
  return add(use, {.kind = JobOpKind::collective,
                   .group = groups_.group_of(kind, rank_),
                   .op = op,
                   .bytes = bytes});
}

std::uint32_t RankOps::exchange(TrainingUse use, std::uint64_t bytes, std::uint64_t draw,
                                bool transposed) {
  return add(use, {.kind = JobOpKind::collective,
                   .group = groups_.group_of(TrainingGroup::expert, rank_),
                   .op = CollectiveOp::all_to_all,
                   .bytes = bytes,
                   .draw = draw,
                   .transposed = transposed});
}

std::uint32_t RankOps::send(TrainingUse use, std::uint32_t to, std::uint32_t tag,
                            std::uint64_t bytes) {
  return add(use, {.kind = JobOpKind::send, .peer = to, .tag = tag, .bytes = bytes});
}

std::uint32_t RankOps::receive(TrainingUse use, std::uint32_t from, std::uint32_t tag,
                               std::uint64_t bytes) {
  return add(use, {.kind = JobOpKind::receive, .peer = from, .tag = tag, .bytes = bytes});
}

void RankOps::wait(std::uint32_t op, std::uint32_t before) {
  if (before != kNone) job_.waits.emplace_back(op, before);
}

}  // namespace paceline::workload
