// Gradient sizes of known models, computed from their published shape.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace paceline::workload {

// A decoder-only transformer with grouped-query attention, gated feed-forward (three matrices), RMS
// norms and separate input and output embeddings.
struct TransformerShape {
  std::uint64_t layers = 0;
  std::uint64_t hidden = 0;
  std::uint64_t feed_forward = 0;
  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t vocabulary = 0;

  constexpr std::uint64_t layer_parameters() const {
    const std::uint64_t kv = hidden / heads * kv_heads;
    const std::uint64_t attention = 2 * hidden * hidden + 2 * hidden * kv;  // Q and O, K and V
    return attention + 3 * hidden * feed_forward + 2 * hidden;              // and two norms
  }
  constexpr std::uint64_t embedding_parameters() const { return vocabulary * hidden; }
  constexpr std::uint64_t parameters() const {
    return layers * layer_parameters() + 2 * embedding_parameters() + hidden;
  }
};

// Llama 3 70B ("The Llama 3 Herd of Models", arXiv 2407.21783, table 3): 80 layers, hidden 8192,
// feed-forward 28672, 64 heads over 8 key/value heads, vocabulary 128256.
inline constexpr TransformerShape kLlama3_70b{80, 8192, 28'672, 64, 8, 128'256};
static_assert(kLlama3_70b.parameters() == 70'553'706'496);

// The shape named in a scenario, or null.
const TransformerShape* find_model(std::string_view name);

// Bytes of each gradient bucket divided by `scale` (rounded down), at 2 bytes a parameter, in the
// order in which the backward pass produces them: output embedding and last norm, the layers from
// the last to the first, input embedding.
std::vector<std::uint64_t> gradient_buckets(const TransformerShape& shape, double scale);

}  // namespace paceline::workload
