// Training jobs from a scenario's [workload.job.model].
#pragma once

#include <cstdint>

#include "dataplane/config/scenario.h"
#include "tools/workload/jobs/imported.h"
#include "tools/workload/jobs/job.h"
#include "tools/workload/training/training_settings.h"

namespace paceline::workload {

// Errors: no model, two models, or sizes that do not fit together.
Imported<TrainingSettings> training_settings(const config::TrainingConfig& config,
                                             std::uint32_t iterations);

// An error unless `ranks` is the product of the parallel degrees.
Imported<Job> model_job(const config::JobConfig& config, std::uint32_t ranks);

}  // namespace paceline::workload
