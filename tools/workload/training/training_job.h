// Iterations of training as a job, made from the shape of a model.
//
// A rank computes one thing after the other, and so run the collectives of tensor and expert
// parallelism, for which it waits. In parallel run messages between the stages of a pipeline, keys
// and values around the ring of context parallelism, and the exchange with replicas: gradients in
// buckets, as the backward pass of the last micro-batch reaches them. An iteration begins to use a
// weight when its update has ended.
//
// Not modelled: the loss and embeddings of tensor parallelism, the norm of gradients,
// recomputation, and the time of the optimizer.
#pragma once

#include <cstdint>

#include "tools/workload/jobs/imported.h"
#include "tools/workload/jobs/job.h"
#include "tools/workload/training/training_settings.h"

namespace paceline::workload {

// Errors: what check_training says, and more than kMostJobOps ops.
Imported<Job> job_of_training(const TrainingSettings& settings, std::uint32_t ranks);

// The ops of one rank alone, of settings without errors.
Job training_of_rank(const TrainingSettings& settings, std::uint32_t rank);

}  // namespace paceline::workload
