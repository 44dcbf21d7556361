#include "tools/workload/models/training_traffic.h"

#include <utility>

#include "tools/workload/models/rank_groups.h"

namespace paceline::workload {

namespace {

// Share of all parts but one, of n equal parts.
double others(std::uint32_t n) { return (n - 1.0) / n; }

class TrainingRows {
 public:
  TrainingRows(const TrainingModel& model, const Parallelism& parallelism, const TrainingStep& step)
      : model_(model),
        by_(parallelism),
        step_(step),
        groups_(parallelism.ranks(), parallelism.gpus_per_server),
        layers_(static_cast<double>(model.layers) / parallelism.pipeline),
        micro_batches_(step.micro_batches) {}

  std::vector<DimensionTraffic> ring() {
    replicas("data", model_.parameters / (1.0 * by_.tensor * by_.pipeline), layers_,
             by_.data * by_.context, {{by_.tensor, by_.data * by_.context}});
    const double expert_layers = static_cast<double>(model_.expert_layers) / by_.pipeline;
    const std::uint64_t experts_stride = std::uint64_t{by_.tensor} * by_.context;
    if (model_.experts != 0) {
      replicas("expert data",
               model_.expert_parameters / (1.0 * by_.tensor * by_.pipeline * by_.expert),
               expert_layers, by_.data / by_.expert * by_.context,
               {{by_.tensor, by_.context}, {experts_stride * by_.expert, by_.data / by_.expert}});
    }
    if (by_.tensor > 1) tensor();
    if (by_.pipeline > 1) pipeline();
    if (by_.expert > 1) {
      const double calls = 2 * micro_batches_ * expert_layers;  // dispatch and combine
      const double sent = calls * activation() * model_.top_k * others(by_.expert);
      rows_.push_back(
          {"expert", sent, sent, calls, calls, groups_.mesh_share({{experts_stride, by_.expert}})});
    }
    if (by_.context > 1) context();
    return std::move(rows_);
  }

  // Sums over all ranks as published, shared out to the ranks.
  std::vector<DimensionTraffic> mesh() {
    const auto ranks = static_cast<double>(by_.ranks());
    const double data = by_.data;
    const double tensor = by_.tensor;
    const double pipeline = by_.pipeline;
    const double weights = model_.value_bytes * model_.parameters;
    const double tokens = step_.tokens * micro_batches_ * data;
    const double activations = model_.value_bytes * tokens * model_.hidden;
    const double layers = model_.layers;
    if (by_.data > 1) {
      const bool full = by_.sharding == Sharding::full;
      const double gather = full ? weights * (data - 1) / ranks : 0;
      const double share = groups_.mesh_share({{by_.tensor, by_.data}});
      rows_.push_back({"data", gather, full ? gather : weights * data * (data - 1) / ranks,
                       full ? layers : 0, full ? layers : 1, share});
    }
    if (by_.tensor > 1) {
      rows_.push_back({"tensor", 2 * layers * activations * tensor * (tensor - 1) / ranks,
                       2 * layers * weights * (tensor - 1) * data / pipeline / ranks,
                       2 * layers * tokens, 2 * layers, groups_.mesh_share({{1, by_.tensor}})});
    }
    if (by_.pipeline > 1) {
      const double sent = activations * (pipeline - 1) / ranks;
      rows_.push_back(
          {"pipeline", sent, sent, pipeline - 1, pipeline - 1, groups_.chain_share(stages(), 1)});
    }
    return std::move(rows_);
  }

 private:
  // Activation bytes of a micro-batch at a rank, with the whole hidden size.
  double activation() const {
    return model_.value_bytes * step_.tokens / by_.context * model_.hidden;
  }
  RankDigit stages() const { return {by_.ranks() / by_.pipeline, by_.pipeline}; }

  // Weights that `degree` ranks have, or share.
  void replicas(std::string_view dimension, double parameters, double layers, std::uint32_t degree,
                const RankDigits& group) {
    if (degree < 2) return;
    const double gradients = step_.gradient_bytes * parameters * others(degree);
    const double weights = model_.value_bytes * parameters * others(degree);
    DimensionTraffic row{.dimension = dimension, .nic_share = groups_.ring_share(group)};
    switch (by_.sharding) {
      case Sharding::none:
        row.backward = 2 * gradients;
        row.backward_calls = 1;
        break;
      case Sharding::optimizer:
        row.forward = weights;
        row.backward = gradients;
        row.forward_calls = row.backward_calls = 1;
        break;
      case Sharding::full: {
        const double times = step_.frees_weights ? micro_batches_ : 1;
        row.forward = times * weights;
        row.backward = times * weights + gradients;
        row.forward_calls = times * layers;
        row.backward_calls = times * layers + layers;
        break;
      }
    }
    rows_.push_back(row);
  }

  // A layer has attention and feed-forward; each is an all-reduce, or a gather and a scatter.
  void tensor() {
    const double once = micro_batches_ * layers_ * activation() * others(by_.tensor);
    const double calls = (by_.sequence ? 4 : 2) * micro_batches_ * layers_;
    const bool again = by_.sequence && step_.gathers_inputs;
    rows_.push_back({"tensor", 4 * once, (again ? 6 : 4) * once, calls,
                     calls + (again ? 2 * micro_batches_ * layers_ : 0),
                     groups_.ring_share({{1, by_.tensor}})});
  }

  void pipeline() {
    const double calls = micro_batches_ * (1.0 * by_.pipeline * by_.chunks - 1) / by_.pipeline;
    const double sent = calls * activation() / (by_.sequence ? by_.tensor : 1);
    rows_.push_back(
        {"pipeline", sent, sent, calls, calls, groups_.chain_share(stages(), by_.chunks)});
  }

  // Keys and values go around; backward also their gradients.
  void context() {
    const double calls = micro_batches_ * layers_ * (by_.context - 1);
    const double sent =
        calls * 2 * model_.value_bytes * step_.tokens / by_.context * model_.kv_hidden / by_.tensor;
    rows_.push_back(
        {"context", sent, 2 * sent, calls, calls, groups_.ring_share({{by_.tensor, by_.context}})});
  }

  const TrainingModel& model_;
  const Parallelism& by_;
  const TrainingStep& step_;
  RankGroups groups_;
  double layers_;  // of a rank
  double micro_batches_;
  std::vector<DimensionTraffic> rows_;
};

}  // namespace

std::vector<DimensionTraffic> training_traffic(const TrainingModel& model,
                                               const Parallelism& parallelism,
                                               const TrainingStep& step, Accounting accounting) {
  TrainingRows rows(model, parallelism, step);
  return accounting == Accounting::ring ? rows.ring() : rows.mesh();
}

}  // namespace paceline::workload
