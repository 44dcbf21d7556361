// Sizes of a model that decide how much its training sends.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace paceline::workload {

struct TrainingModel {
  double parameters = 0;         // all but those of routed experts
  double expert_parameters = 0;  // of all routed experts of all layers
  std::uint32_t layers = 0;
  std::uint32_t expert_layers = 0;  // of these, those with routed experts
  std::uint32_t experts = 0;        // routed ones of a layer; 0: none
  std::uint32_t top_k = 0;          // experts that a token is sent to
  std::uint32_t hidden = 0;
  std::uint32_t kv_hidden = 0;  // values in the keys (as many in the values) of a token and layer
  double value_bytes = 2;       // of a weight and an activation
};

// The model of that name, or one without layers.
TrainingModel find_training_model(std::string_view name);
std::vector<std::string_view> training_model_names();

}  // namespace paceline::workload
