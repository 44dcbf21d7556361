#include "tools/workload/training/training_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tools/workload/jobs/import_limits.h"

namespace paceline::workload {

namespace {

class TrainingCheck {
 public:
  TrainingCheck(const TrainingSettings& settings, std::uint32_t ranks)
      : s_(settings), by_(settings.by), ranks_(ranks) {}

  std::vector<std::string> errors() {
    check_ranks();
    check_stages();
    check_experts();
    check_context();
    check_sizes();
    refuse(by_.sequence && by_.tensor == 1, "sequence_parallel", "true",
           "allowed with tp of 2 or more");
    refuse(s_.step.gathers_inputs && !by_.sequence, "gather_again", "true",
           "allowed with sequence_parallel = true");
    refuse(s_.step.frees_weights && by_.sharding != Sharding::full, "free_weights", "true",
           "allowed with zero = 3");
    return std::move(errors_);
  }

 private:
  template <class Value>
  void refuse(bool wrong, std::string_view key, const Value& value, const std::string& allowed) {
    if (!wrong) return;
    errors_.push_back(fmt::format("workload.job.model.{} = {}: {}", key, value, allowed));
  }

  void check_ranks() {
    const double ranks = 1.0 * by_.tensor * by_.context * by_.data * by_.pipeline;
    if (ranks == ranks_) return;
    errors_.push_back(fmt::format(
        "workload.job.model: tp {} x cp {} x dp {} x pp {} = {:.9g} ranks: expected {}, "
        "the NICs that the job may have",
        by_.tensor, by_.context, by_.data, by_.pipeline, ranks, ranks_));
  }

  void check_stages() {
    const std::uint64_t parts = std::uint64_t{by_.pipeline} * by_.chunks;
    if (by_.chunks > 1) {
      refuse(by_.pipeline == 1, "virtual_stages", by_.chunks, "allowed with pp of 2 or more");
      refuse(s_.step.micro_batches % by_.pipeline != 0, "micro_batches", s_.step.micro_batches,
             fmt::format("with virtual_stages = {} expected a multiple of pp = {}", by_.chunks,
                         by_.pipeline));
    }
    refuse(s_.model.layers % parts != 0, by_.chunks > 1 ? "virtual_stages" : "pp",
           by_.chunks > 1 ? by_.chunks : by_.pipeline,
           fmt::format("{} parts of the model; expected a divisor of its {} layers", parts,
                       s_.model.layers));
  }

  void check_experts() {
    const TrainingModel& model = s_.model;
    if (model.experts == 0) {
      refuse(by_.expert > 1, "ep", by_.expert, "the model has no experts, allowed is 1");
      return;
    }
    refuse(by_.data % by_.expert != 0, "ep", by_.expert,
           fmt::format("expected a divisor of dp = {}", by_.data));
    refuse(model.experts % by_.expert != 0, "ep", by_.expert,
           fmt::format("expected a divisor of the {} experts of a layer", model.experts));
  }

  void check_context() {
    refuse(s_.sequence % by_.context != 0, "cp", by_.context,
           fmt::format("expected a divisor of sequence = {}", s_.sequence));
    refuse(by_.context > 1 && s_.model.kv_hidden == 0, "cp", by_.context,
           "the size of the model's keys and values is not known, allowed is 1");
  }

  // Far from the ends of 64 bits.
  void check_sizes() {
    const TrainingModel& m = s_.model;
    const double tokens = s_.step.tokens;
    const double exchanged = m.value_bytes * tokens * m.hidden * std::max(m.top_k, 2U) *
                             std::min(s_.merge_layers, m.layers);
    const double weights =
        (m.parameters + m.expert_parameters) * std::max(m.value_bytes, s_.step.gradient_bytes);
    for (const auto& [bytes, what] :
         {std::pair(exchanged, "activations of a micro-batch"), std::pair(weights, "weights")}) {
      if (bytes <= static_cast<double>(kMostJobBytes)) continue;
      errors_.push_back(fmt::format("workload.job.model: {:.3g} B of {}: at most {:.3g} B fit",
                                    bytes, what, static_cast<double>(kMostJobBytes)));
    }
    const double used = m.experts == 0 ? 0 : m.expert_parameters * m.top_k / m.experts;
    const double flop = 2 * (m.parameters + used) + 4.0 * s_.sequence * m.hidden * m.layers;
    const double nanos = 3 * flop * tokens / s_.flops * 1e9 * s_.step.micro_batches * s_.iterations;
    refuse(nanos > static_cast<double>(kMostJobNanos), "flops", s_.flops,
           fmt::format("a rank computes for up to {:.3g} s: at most {:.3g} s fit", nanos / 1e9,
                       static_cast<double>(kMostJobNanos) / 1e9));
  }

  const TrainingSettings& s_;
  const Parallelism& by_;
  std::uint32_t ranks_;
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> check_training(const TrainingSettings& settings, std::uint32_t ranks) {
  return TrainingCheck(settings, ranks).errors();
}

}  // namespace paceline::workload
