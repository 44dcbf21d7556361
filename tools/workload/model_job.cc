#include "tools/workload/model_job.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "dataplane/config/keys/scenario_keys.h"
#include "tools/workload/training/training_job.h"

namespace paceline::workload {

namespace {

class ModelReader {
 public:
  explicit ModelReader(const config::TrainingConfig& config) : c_(config) {}

  Imported<TrainingModel> model() {
    if (!c_.name.empty()) {
      named();
    } else {
      sized();
    }
    return std::move(out_);
  }

 private:
  struct Size {
    std::string_view key;
    std::uint32_t value = 0;
  };

  template <class Value>
  void refuse(std::string_view key, const Value& value, const std::string& allowed) {
    out_.errors.push_back(fmt::format("workload.job.model.{} = {}: {}", key, value, allowed));
  }

  void named() {
    for (const Size& size :
         {Size{"layers", c_.layers}, Size{"hidden", c_.hidden}, Size{"heads", c_.heads},
          Size{"kv_heads", c_.kv_heads}, Size{"ffn", c_.ffn}, Size{"vocabulary", c_.vocabulary},
          Size{"experts", c_.experts}, Size{"top_k", c_.top_k},
          Size{"expert_layers", c_.expert_layers}, Size{"expert_ffn", c_.expert_ffn}}) {
      if (size.value == 0) continue;
      refuse(size.key, size.value,
             fmt::format("contradicts workload.job.model.name = \"{}\", which says it", c_.name));
    }
    out_.value = find_training_model(c_.name);
    if (out_.value.layers != 0) return;
    refuse("name", fmt::format("\"{}\"", c_.name),
           fmt::format("allowed is {}", config::list_names(training_model_names())));
  }

  void sized() {
    for (const Size& size :
         {Size{"layers", c_.layers}, Size{"hidden", c_.hidden}, Size{"heads", c_.heads},
          Size{"ffn", c_.ffn}, Size{"vocabulary", c_.vocabulary}}) {
      if (size.value == 0) refuse(size.key, 0, "without a name, allowed is 1 or more");
    }
    if (!out_.ok()) return;
    if (c_.hidden % c_.heads != 0) {
      refuse("heads", c_.heads, fmt::format("expected a divisor of hidden = {}", c_.hidden));
    }
    if (c_.kv_heads != 0 && c_.heads % c_.kv_heads != 0) {
      refuse("kv_heads", c_.kv_heads, fmt::format("expected a divisor of heads = {}", c_.heads));
    }
    check_experts();
    if (!out_.ok()) return;
    const std::uint32_t kv_heads = c_.kv_heads == 0 ? c_.heads : c_.kv_heads;
    out_.value = training_model_of(
        {c_.layers, c_.hidden, c_.ffn, c_.heads, kv_heads, c_.vocabulary}, experts());
  }

  void check_experts() {
    if (c_.experts == 0) {
      for (const Size& size : {Size{"top_k", c_.top_k}, Size{"expert_layers", c_.expert_layers},
                               Size{"expert_ffn", c_.expert_ffn}}) {
        if (size.value != 0) refuse(size.key, size.value, "allowed with experts of 1 or more");
      }
      return;
    }
    if (c_.top_k == 0 || c_.top_k > c_.experts) {
      refuse("top_k", c_.top_k, fmt::format("allowed with experts = {0} is 1 .. {0}", c_.experts));
    }
    if (c_.expert_layers > c_.layers) {
      refuse("expert_layers", c_.expert_layers,
             fmt::format("allowed with layers = {0} is 0 .. {0}", c_.layers));
    }
  }

  ExpertShape experts() const {
    if (c_.experts == 0) return {};
    return {c_.experts, c_.top_k, c_.expert_layers == 0 ? c_.layers : c_.expert_layers,
            c_.expert_ffn == 0 ? c_.ffn : c_.expert_ffn};
  }

  const config::TrainingConfig& c_;
  Imported<TrainingModel> out_;
};

Sharding sharding_of_zero(std::uint32_t zero) {
  if (zero == 0) return Sharding::none;
  return zero == 3 ? Sharding::full : Sharding::optimizer;
}

}  // namespace

Imported<TrainingSettings> training_settings(const config::TrainingConfig& c,
                                             std::uint32_t iterations) {
  Imported<TrainingModel> model = ModelReader(c).model();
  TrainingSettings settings;
  settings.model = model.value;
  settings.by = {.data = c.dp,
                 .tensor = c.tp,
                 .pipeline = c.pp,
                 .expert = c.ep,
                 .context = c.cp,
                 .chunks = c.virtual_stages,
                 .sharding = sharding_of_zero(c.zero),
                 .sequence = c.sequence_parallel};
  settings.step = {.micro_batches = c.micro_batches,
                   .tokens = 1.0 * c.sequence * c.micro_batch,
                   .gradient_bytes = 1.0 * c.gradient_bytes,
                   .gathers_inputs = c.gather_again,
                   .frees_weights = c.free_weights};
  settings.sequence = c.sequence;
  settings.causal = c.causal;
  settings.flops = c.flops;
  settings.bucket_bytes = c.bucket_bytes;
  settings.merge_layers = c.merge_layers;
  settings.iterations = iterations;
  return {settings, std::move(model.errors), {}};
}

Imported<Job> model_job(const config::JobConfig& config, std::uint32_t ranks) {
  Imported<TrainingSettings> settings = training_settings(config.model, config.iterations);
  if (!settings.ok()) return {{}, std::move(settings.errors), {}};
  return job_of_training(settings.value, ranks);
}

}  // namespace paceline::workload
