// What training a model by several kinds of parallelism sends, in closed form.
//
// Ranks are numbered as Megatron does: tensor, then context, data and pipeline, the slowest last;
// those of a server follow one another.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/workload/models/training_model.h"

namespace paceline::workload {

enum class Accounting : std::uint8_t {
  ring,       // what ring collectives put on links
  naive_mesh  // every rank sends all it has to every other: the accounting of published tables
};

enum class Sharding : std::uint8_t {
  none,       // gradients are all-reduced
  optimizer,  // ZeRO-1, ZeRO-2: gradients are reduced and scattered, weights gathered
  full        // ZeRO-3, FSDP: weights are gathered layer by layer, forward and backward
};

// The degrees of each kind. expert divides data: experts are spread over data-parallel ranks.
struct Parallelism {
  std::uint32_t data = 1;
  std::uint32_t tensor = 1;
  std::uint32_t pipeline = 1;
  std::uint32_t expert = 1;
  std::uint32_t context = 1;
  std::uint32_t chunks = 1;  // interleaving: parts of the layers that a pipeline rank has
  Sharding sharding = Sharding::none;
  bool sequence = false;  // activations are split over tensor ranks between their layers
  std::uint32_t gpus_per_server = 8;

  std::uint64_t ranks() const { return std::uint64_t{data} * tensor * pipeline * context; }
};

struct TrainingStep {
  std::uint32_t micro_batches = 1;
  double tokens = 0;            // of a micro-batch, of all its context ranks together
  double gradient_bytes = 2;    // of a gradient when it is reduced
  bool gathers_inputs = false;  // backward gathers the inputs of sequence parallelism again
  bool frees_weights = false;   // Sharding::full gathers weights for every micro-batch
};

// One kind of parallelism. Bytes and calls of a step and a rank, as the mean over all ranks.
struct DimensionTraffic {
  std::string_view dimension;  // "data", "expert data", "tensor", "pipeline", "expert", "context"
  double forward = 0;
  double backward = 0;
  double forward_calls = 0;
  double backward_calls = 0;
  double nic_share = 0;  // of the bytes: those that leave the server

  double bytes() const { return forward + backward; }
};

// The kinds whose degree is above 1. Layers are divided evenly, so that a rank may have a part of
// one. Sharding::optimizer gathers weights for the next forward pass and is counted there.
//
// Accounting::naive_mesh knows no experts, context ranks or Sharding::optimizer. It assumes that
// tensor parallelism reduces all weights in every layer of the backward pass, and counts a call of
// its forward pass for every token, as the published table does.
std::vector<DimensionTraffic> training_traffic(const TrainingModel& model,
                                               const Parallelism& parallelism,
                                               const TrainingStep& step, Accounting accounting);

}  // namespace paceline::workload
