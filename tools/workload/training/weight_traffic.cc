#include "tools/workload/training/weight_traffic.h"

namespace paceline::workload {

namespace {

struct Replicas {
  TrainingGroup group;
  TrainingUse gradients;
  TrainingUse weights;
};

constexpr std::array<Replicas, 2> kReplicas{{
    {TrainingGroup::data, TrainingUse::data_gradients, TrainingUse::data_weights},
    {TrainingGroup::expert_data, TrainingUse::expert_data_gradients,
     TrainingUse::expert_data_weights},
}};

}  // namespace

WeightTraffic::Ops WeightTraffic::gather(std::size_t unit, const StageUnit& sizes,
                                         std::uint32_t after) {
  const Ops gathered =
      gather_all({sizes.parameters, sizes.expert_parameters}, {after, RankOps::kNone});
  for (const std::uint32_t op : gathered) {
    if (op == RankOps::kNone) continue;
    for (const std::uint32_t before : updated_[unit]) ops_.wait(op, before);
  }
  return gathered;
}

WeightTraffic::Ops WeightTraffic::gather_all(const Parameters& parameters, const Ops& after) {
  Ops out{RankOps::kNone, RankOps::kNone};
  for (std::size_t kind = 0; kind < kReplicas.size(); ++kind) {
    const Replicas& replicas = kReplicas[kind];
    if (parameters[kind] == 0 || ops_.ranks_of(replicas.group) < 2) continue;
    out[kind] = ops_.collective(replicas.weights, replicas.group, CollectiveOp::all_gather,
                                bytes_of_values(parameters[kind], settings_.model.value_bytes));
    for (const std::uint32_t before : after) ops_.wait(out[kind], before);
    ops_.wait(out[kind], gathered_[kind]);
    gathered_[kind] = out[kind];
  }
  return out;
}

void WeightTraffic::reduce(std::size_t unit, const StageUnit& sizes, std::uint32_t after,
                           bool last) {
  open_.parameters[0] += sizes.parameters;
  open_.parameters[1] += sizes.expert_parameters;
  open_.units.push_back(unit);
  open_.after = after;
  const bool full = bytes_of_values(open_.parameters[0] + open_.parameters[1],
                                    settings_.step.gradient_bytes) >= settings_.bucket_bytes;
  if (full || last || settings_.by.sharding == Sharding::full) close_bucket();
}

void WeightTraffic::close_bucket() {
  const CollectiveOp op = settings_.by.sharding == Sharding::none ? CollectiveOp::all_reduce
                                                                  : CollectiveOp::reduce_scatter;
  for (std::size_t kind = 0; kind < kReplicas.size(); ++kind) {
    const Replicas& replicas = kReplicas[kind];
    if (open_.parameters[kind] == 0 || ops_.ranks_of(replicas.group) < 2) continue;
    const std::uint32_t call =
        ops_.collective(replicas.gradients, replicas.group, op,
                        bytes_of_values(open_.parameters[kind], settings_.step.gradient_bytes));
    ops_.wait(call, open_.after);
    ops_.wait(call, reduced_[kind]);
    reduced_[kind] = call;
  }
  closed_.push_back(std::move(open_));
  open_ = {};
}

// An optimizer needs the norm of all gradients. Weights are gathered in the order of their use.
void WeightTraffic::end_iteration() {
  for (std::size_t i = closed_.size(); i-- > 0;) {
    const Bucket& bucket = closed_[i];
    const Ops needed = settings_.by.sharding == Sharding::optimizer
                           ? gather_all(bucket.parameters, reduced_)
                           : reduced_;
    for (const std::size_t unit : bucket.units) updated_[unit] = needed;
  }
  closed_.clear();
}

}  // namespace paceline::workload
