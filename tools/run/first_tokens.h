// How long the requests of an inference service wait for their answers to begin.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/driver/traffic/message_app.h"
#include "tools/workload/job_plans/job_plan.h"

namespace paceline::tools {

// From the arrival of a request to the last byte of the keys and values that its answer begins
// with.
struct FirstTokens {
  std::uint64_t requests = 0;
  double mean_us = 0;
  double p50_us = 0;
  double p99_us = 0;
};

// For a job whose ops have all ended.
FirstTokens first_tokens_of(const workload::Job& job, const workload::JobPlan& plan,
                            const std::vector<MessageRecord>& records);

}  // namespace paceline::tools
