// A job between the NICs of a running testbed, in real time: the messages of its plan over verbs,
// by one process a NIC.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "control/diagnosis/evidence.h"
#include "tools/job/verbs/plan_results.h"
#include "tools/run/job_report.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

struct VerbsJob {
  std::string testbed;
  std::vector<std::string> nics;  // of the testbed; the plan's NIC i is the i-th
  bool data = true;               // every byte is compared; else lengths
  double patience = 60;           // seconds without a message or computation
  bool diagnose = false;          // names slow ranks
};

struct VerbsJobResult {
  JobReport job;
  diagnosis::Evidence evidence;  // of the job's ranks only
  std::uint32_t nics = 0;        // that ran
  DataTotals totals;
  std::vector<std::string> failures;  // with any, there is no report
};

// Errors: reasons why the job cannot run. Ends early, without a report, once `stop` is set.
config::Read<VerbsJobResult> run_verbs_job(const PreparedScenario& prepared,
                                           const VerbsJob& options, const std::atomic<bool>& stop,
                                           const std::function<void(double share)>& progress);

std::string verbs_job_text(const PreparedScenario& prepared, const VerbsJob& options,
                           const VerbsJobResult& result);
std::string verbs_job_json(const PreparedScenario& prepared, const VerbsJob& options,
                           const VerbsJobResult& result);

}  // namespace paceline::tools
