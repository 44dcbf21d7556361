// Requests of an inference service as a job: prefill ranks compute prompts, and send keys and
// values to decode ranks.
//
// A prefill rank computes one request after the other, in parts of some layers; a part's keys and
// values are sent when it has been computed, while the next part is. What it fetches from another
// prefill rank is sent once the request has arrived and the other rank has it, and computing waits
// for it.
//
// Not modelled: the computing of decode ranks, full memory, and what decode ranks may have kept of
// an earlier request.
#pragma once

#include "tools/workload/inference/prefill_plan.h"
#include "tools/workload/inference/request_trace.h"
#include "tools/workload/jobs/imported.h"
#include "tools/workload/jobs/job.h"

namespace paceline::workload {

// Errors: what inference_errors says, and more than kMostJobOps ops.
Imported<Job> job_of_inference(const RequestTrace& trace, const InferenceSettings& settings);

}  // namespace paceline::workload
