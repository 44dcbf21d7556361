// A workload of SimAI as a job: iterations of training, the same for every rank.
//
// Rank = tp + TP * (dp + DP * pp), as Megatron numbers them. Groups: TP ranks that follow one
// another; DP those with the same tp and pp; EP parts of a DP group that follow one another, and
// DP_EP those at the same place of these. Forward: layer by layer, computing and then the
// collective, for which the rank waits. Backward, from the last layer on: the input gradient
// likewise; then the weight gradient, for whose collective only the same layer of the next
// iteration waits.
//
// Stages of a pipeline (pp_comm bytes in the file) send activations on behind each forward pass,
// and gradients back behind each backward pass; a pass waits for what the neighbouring stage sends.
// All forward passes come before the backward ones, as in the file; micro-batches go through a part
// of the model in groups as large as there are stages, and then through the next part.
#pragma once

#include <cstdint>

#include "tools/workload/jobs/imported.h"
#include "tools/workload/jobs/job.h"
#include "tools/workload/jobs/simai_workload.h"

namespace paceline::workload {

// ranks: multiple of tp * pp, and of tp * pp * ep where ep is more than 1; should be all_gpus,
// where the file says it (a warning). More than kMostJobOps ops are an error, and what
// simai_stretches() says. Further warnings: stages of a pipeline without pp_comm, and layers
// without communication because their word is BROADCAST.
Imported<Job> job_of_simai(const SimaiWorkload& workload, std::uint32_t ranks,
                           std::uint32_t iterations);

}  // namespace paceline::workload
