// Training as a scenario asks for it: the model, the step, and how ranks share the work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/workload/models/training_model.h"
#include "tools/workload/models/training_traffic.h"

namespace paceline::workload {

struct TrainingSettings {
  TrainingModel model;
  Parallelism by;
  TrainingStep step;  // tokens: sequence times the sequences of a micro-batch
  std::uint32_t sequence = 1;
  bool causal = true;
  double flops = 1;  // sustained, of a rank
  std::uint64_t bucket_bytes = 1;
  std::uint32_t merge_layers = 1;
  std::uint32_t iterations = 1;
};

// `each`: bytes of one, of which a fraction is left out.
constexpr std::uint64_t bytes_of_values(std::uint64_t values, double each) {
  return values * static_cast<std::uint64_t>(each);
}

// Errors, with the names of the scenario's keys. ranks: the number of NICs in the fabric.
std::vector<std::string> check_training(const TrainingSettings& settings, std::uint32_t ranks);

}  // namespace paceline::workload
