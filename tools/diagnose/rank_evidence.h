// What each rank of a job did before each of its collectives, from the report of a run: in virtual
// time, or over verbs.
#pragma once

#include "control/diagnosis/evidence.h"
#include "tools/run/job_report.h"
#include "tools/workload/workload.h"

namespace paceline::tools {

// Sets the ranks of `out`. `nics`: of each rank.
void read_ranks(const workload::Job& job, const workload::JobPlan& plan, const JobReport& report,
                const workload::Placement& nics, diagnosis::Evidence& out);

}  // namespace paceline::tools
