#include "tools/workload/models/model_shape.h"

namespace paceline::workload {

const TransformerShape* find_model(std::string_view name) {
  return name == "llama3-70b" ? &kLlama3_70b : nullptr;
}

std::vector<std::uint64_t> gradient_buckets(const TransformerShape& shape, double scale) {
  constexpr std::uint64_t kBytesPerParameter = 2;  // bf16
  const auto scaled = [&](std::uint64_t parameters) {
    return static_cast<std::uint64_t>(static_cast<double>(parameters * kBytesPerParameter) / scale);
  };
  std::vector<std::uint64_t> buckets;
  buckets.push_back(scaled(shape.embedding_parameters() + shape.hidden));
  for (std::uint64_t i = 0; i < shape.layers; ++i) {
    buckets.push_back(scaled(shape.layer_parameters()));
  }
  buckets.push_back(scaled(shape.embedding_parameters()));
  return buckets;
}

}  // namespace paceline::workload
