// Which layers of a SimAI workload belong to which pass through a stage of the pipeline.
//
// AICB writes the layers of one rank: work that is done once, then every micro-batch in full, each
// with a layer `embedding_layer` before those of the model, then again work that is done once.
// `vpp` is the number of parts of the model that the rank has; AICB makes each layer of the model
// one.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"
#include "tools/workload/jobs/simai_workload.h"
#include "tools/workload/training/pipeline_order.h"

namespace paceline::workload {

// Layers from `begin` up to `end`, those of one forward and one backward pass where they are one.
struct SimaiStretch {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool is_pass = false;
  PipelinePass pass;  // the forward one
};

PipelineShape pipeline_of(const SimaiWorkload& workload);

// Whether the file says that stages send activations to one another.
bool has_pipeline(const SimaiWorkload& workload);

// All layers, as stretches in the order of the forward passes of pipeline_order.h; one stretch
// without has_pipeline(). Errors: other than `ga` micro-batches, and a micro-batch whose number of
// layers is not a multiple of `vpp`.
config::Read<std::vector<SimaiStretch>> simai_stretches(const SimaiWorkload& workload);

}  // namespace paceline::workload
