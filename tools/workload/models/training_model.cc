#include "tools/workload/models/training_model.h"

#include <algorithm>
#include <array>

namespace paceline::workload {

namespace {

// "LLaMA: Open and Efficient Foundation Language Models" (arXiv 2302.13971), table 2: the shape of
// Llama 3 with a key and value head for every head; vocabulary 32000. Feed-forward: 8/3 of hidden
// in multiples of 256.
constexpr TransformerShape kLlama_7b{32, 4096, 11'008, 32, 32, 32'000};
static_assert(kLlama_7b.parameters() == 6'738'415'616);
constexpr TransformerShape kLlama_65b{80, 8192, 22'016, 64, 64, 32'000};
static_assert(kLlama_65b.parameters() == 65'285'660'672);

// The smallest one of kLlama3_70b's paper.
constexpr TransformerShape kLlama3_8b{32, 4096, 14'336, 32, 8, 128'256};
static_assert(kLlama3_8b.parameters() == 8'030'261'248);

constexpr TrainingModel of_shape(const TransformerShape& shape, const ExpertShape& experts) {
  const std::uint64_t routed = 3 * shape.hidden * experts.feed_forward * experts.experts;
  const std::uint64_t dense = 3 * shape.hidden * shape.feed_forward;
  TrainingModel model;
  model.parameters =
      static_cast<double>(shape.parameters() - experts.layers * dense +
                          experts.layers * shape.hidden * experts.experts);  // the routers
  model.expert_parameters = static_cast<double>(experts.layers * routed);
  model.layers = static_cast<std::uint32_t>(shape.layers);
  model.expert_layers = static_cast<std::uint32_t>(experts.layers);
  model.experts = experts.experts;
  model.top_k = experts.top_k;
  model.hidden = static_cast<std::uint32_t>(shape.hidden);
  model.kv_hidden = static_cast<std::uint32_t>(shape.hidden / shape.heads * shape.kv_heads);
  model.input_parameters = static_cast<double>(shape.embedding_parameters());
  model.output_parameters = static_cast<double>(shape.embedding_parameters() + shape.hidden);
  model.attention_parameters = static_cast<double>(shape.layer_parameters() - dense);
  return model;
}

// GPT-3 ("Language Models are Few-Shot Learners", arXiv 2005.14165, table 2.1): feed-forward four
// times hidden, biases, two norms a layer and one behind the last, vocabulary 50257 with one matrix
// for both ends, 2048 positions. The paper prints hidden 5140 of the 13B model; 40 heads of 128 are
// 5120, which also gives the 12,850 million parameters of its table D.1.
constexpr std::uint64_t gpt_parameters(std::uint64_t layers, std::uint64_t hidden) {
  return layers * (12 * hidden * hidden + 13 * hidden) + (50'257 + 2048 + 2) * hidden;
}
static_assert(gpt_parameters(40, 5120) == 12'853'386'240);
static_assert(gpt_parameters(96, 12'288) == 174'604'259'328);

constexpr TrainingModel gpt(std::uint32_t layers, std::uint32_t hidden) {
  TrainingModel model;
  model.parameters = static_cast<double>(gpt_parameters(layers, hidden));
  model.layers = layers;
  model.hidden = hidden;
  model.kv_hidden = hidden;
  model.input_parameters = 2048.0 * hidden;
  model.output_parameters = (50'257.0 + 2) * hidden;  // the matrix of both ends computes here
  model.attention_parameters = (4.0 * hidden + 6) * hidden;  // with biases and a norm
  return model;
}

// DeepSeek-V3 (arXiv 2412.19437, section 4.2) without multi-token prediction: 61 layers, the first
// 3 dense, hidden 7168, feed-forward 18432 and 2048 of an expert, 256 routed experts and a shared
// one, 8 for a token, vocabulary 129280. Latent attention: 128 heads of 128 + 64, values of 128,
// queries through 1536, keys and values through 512, norms on both. How many values of keys and
// values context parallelism would send depends on the implementation: kv_hidden is left 0.
namespace deepseek {
constexpr std::uint64_t kHidden = 7168;
constexpr std::uint64_t kHeads = 128;
constexpr std::uint64_t kAttention = kHidden * 1536 + 1536 + 1536 * kHeads * (128 + 64) +
                                     kHidden * (512 + 64) + 512 + 512 * kHeads * (128 + 128) +
                                     kHeads * 128 * kHidden;
constexpr std::uint64_t kExpert = 3 * kHidden * 2048;
constexpr std::uint64_t kRouted = std::uint64_t{58} * 256 * kExpert;
constexpr std::uint64_t kRest = 61 * (kAttention + 2 * kHidden) + 3 * (3 * kHidden * 18'432) +
                                58 * (kExpert + 256 * kHidden + 256) + 2 * 129'280 * kHidden +
                                kHidden;
static_assert(kRouted + kRest == 671'026'419'200);  // 671B in the paper
}  // namespace deepseek

constexpr TrainingModel deepseek_v3() {
  TrainingModel model;
  model.parameters = static_cast<double>(deepseek::kRest);
  model.expert_parameters = static_cast<double>(deepseek::kRouted);
  model.layers = 61;
  model.expert_layers = 58;
  model.experts = 256;
  model.top_k = 8;
  model.hidden = deepseek::kHidden;
  model.input_parameters = 129'280.0 * deepseek::kHidden;
  model.output_parameters = 129'281.0 * deepseek::kHidden;
  model.attention_parameters = static_cast<double>(deepseek::kAttention + deepseek::kHidden);
  return model;
}

struct NamedModel {
  std::string_view name;
  TrainingModel model;
};

constexpr auto kTrainingModels = std::to_array<NamedModel>({
    {"deepseek-v3", deepseek_v3()},
    {"gpt-13b", gpt(40, 5120)},
    {"gpt-175b", gpt(96, 12'288)},
    {"llama-7b", of_shape(kLlama_7b, {})},
    {"llama-65b", of_shape(kLlama_65b, {})},
    {"llama3-8b", of_shape(kLlama3_8b, {})},
    {"llama3-70b", of_shape(kLlama3_70b, {})},
});

}  // namespace

TrainingModel training_model_of(const TransformerShape& shape, const ExpertShape& experts) {
  return of_shape(shape, experts);
}

TrainingModel find_training_model(std::string_view name) {
  const auto* const at = std::find_if(kTrainingModels.begin(), kTrainingModels.end(),
                                      [name](const NamedModel& m) { return m.name == name; });
  return at == kTrainingModels.end() ? TrainingModel{} : at->model;
}

std::vector<std::string_view> training_model_names() {
  std::vector<std::string_view> names;
  for (const NamedModel& one : kTrainingModels) names.push_back(one.name);
  return names;
}

}  // namespace paceline::workload
