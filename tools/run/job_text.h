// The report of a job, printed and written.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tools/run/job_report.h"
#include "tools/workload/jobs/job.h"

namespace paceline::tools {

// For people: what ranks did, each kind of collective, the critical path, and the cause of a delay.
// "" if the job did not end.
std::string job_text(const JobReport& report);
nlohmann::ordered_json job_json(const JobReport& report);

// What each rank did when, for chrome://tracing and Perfetto (Trace Event Format): a process for
// each rank, with a row for computing and one for each collective in progress.
std::string job_trace(const workload::Job& job, const JobReport& report);

}  // namespace paceline::tools
