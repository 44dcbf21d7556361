// The order in which a stage of a pipeline works off the micro-batches: one forward, one backward
// (1F1B), and interleaved where a stage has several parts of the layers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace paceline::workload {

struct PipelineShape {
  std::uint32_t stages = 1;
  std::uint32_t chunks = 1;  // of each stage
  std::uint32_t micro_batches = 1;
};

// The forward or backward pass of a micro-batch through a chunk of the stage.
struct PipelinePass {
  bool backward = false;
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;
};

// With several chunks, micro_batches is a multiple of the stages. The passes of a chunk in one
// direction have ascending micro-batches.
std::vector<PipelinePass> pipeline_order(const PipelineShape& shape, std::uint32_t stage);

// The forward passes alone, in the same order at every stage; any number of micro-batches.
std::vector<PipelinePass> forward_order(const PipelineShape& shape);

// The other end of what a pass begins or ends with: activations, or their gradients.
struct PipelineHop {
  std::uint32_t stage = 0;
  std::uint32_t tag = 0;  // the same at both ends; one for each part of the model and direction
};
inline constexpr std::uint32_t kMostHopTags = 0x4000'0000;

// arrives: before the pass, from there; else behind the pass, to there. None at the ends of the
// model.
std::optional<PipelineHop> hop_of(const PipelineShape& shape, std::uint32_t stage,
                                  const PipelinePass& pass, bool arrives);

}  // namespace paceline::workload
