// Sizes of a model that decide how much its training sends.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/workload/models/model_shape.h"

namespace paceline::workload {

struct TrainingModel {
  double parameters = 0;         // all but those of routed experts
  double expert_parameters = 0;  // of all routed experts of all layers
  std::uint32_t layers = 0;
  std::uint32_t expert_layers = 0;  // layers among these with routed experts
  std::uint32_t experts = 0;        // routed ones of a layer; 0: none
  std::uint32_t top_k = 0;          // experts that a token is sent to
  std::uint32_t hidden = 0;
  std::uint32_t kv_hidden = 0;  // values in the keys (as many in the values) of a token and layer
  double value_bytes = 2;       // of a weight and an activation
  // Parts of `parameters`; the others are divided evenly among the layers.
  double input_parameters = 0;      // before the first layer
  double output_parameters = 0;     // after the last layer
  double attention_parameters = 0;  // of a layer
};

// Layers whose feed-forward is a router and experts; the dense layers come first.
struct ExpertShape {
  std::uint32_t experts = 0;  // 0: none
  std::uint32_t top_k = 0;
  std::uint64_t layers = 0;
  std::uint64_t feed_forward = 0;  // of an expert
};

TrainingModel training_model_of(const TransformerShape& shape, const ExpertShape& experts = {});

// The model of that name, or one without layers.
TrainingModel find_training_model(std::string_view name);
std::vector<std::string_view> training_model_names();

}  // namespace paceline::workload
