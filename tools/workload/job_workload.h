// Jobs as a scenario's [workload.job] describes them.
#pragma once

#include <cstdint>

#include "dataplane/config/scenario.h"
#include "tools/workload/job_plans/job_plan.h"
#include "tools/workload/jobs/imported.h"
#include "tools/workload/jobs/job.h"

namespace paceline::workload {

// Reads the job's file, or makes the one collective or training, for that many ranks: a job of
// fewer leaves NICs idle, one of more is an error.
Imported<Job> load_job(const config::JobConfig& config, std::uint32_t ranks);

// The job with its times of computing scaled, jittered by `seed`, and prolonged at the straggler.
Job as_run(Job job, const config::JobConfig& config, std::uint64_t seed);

CollectiveSettings collective_settings(const config::JobConfig& config, std::uint64_t seed);

}  // namespace paceline::workload
