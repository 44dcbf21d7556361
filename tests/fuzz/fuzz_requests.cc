// Traces of inference services, and the jobs made of them: what is accepted obeys the rules of
// RequestTrace, and a job of it can be planned.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tools/workload/inference/inference_job.h"
#include "tools/workload/job_plans/job_plan.h"

namespace {

using namespace paceline::workload;

void require_that(bool holds) {
  if (!holds) std::abort();
}

void check_trace(const RequestTrace& trace) {
  require_that(!trace.requests.empty() && trace.requests.front().ticks == 0);
  std::int64_t last = 0;
  for (const TraceRequest& request : trace.requests) {
    require_that(request.ticks >= last);
    last = request.ticks;
    require_that(request.input >= 1 && request.input <= kMostTraceTokens);
    require_that(request.output <= kMostTraceTokens);
    const std::uint32_t blocks = (request.input + kBlockTokens - 1) / kBlockTokens;
    require_that(request.blocks == 0 || request.blocks == blocks);
    require_that(trace.blocks_of(request).size() == request.blocks);
  }
}

void check_requests_job(const RequestTrace& trace) {
  const InferenceSettings settings{.prefill_ranks = 3,
                                   .decode_ranks = 2,
                                   .layers = 5,
                                   .layers_per_transfer = 2,
                                   .kv_bytes = 7,
                                   .tokens_per_second = 1000};
  const auto job = job_of_inference(trace, settings);
  if (!job.ok()) return;
  std::uint64_t sent = 0, expected = 0;
  const std::vector<PrefillTurn> turns = plan_prefill(trace, settings);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const std::uint64_t input = trace.requests[i].input;
    require_that(turns[i].computed >= 1);
    require_that(turns[i].computed + turns[i].kept + turns[i].fetched() == input);
    expected += (input + turns[i].fetched()) * settings.kv_bytes * settings.layers;
  }
  for (const JobOp& op : job.value.ops) {
    if (op.kind == JobOpKind::send) sent += op.bytes;
  }
  require_that(sent == expected);
  const std::vector<std::uint32_t> servers = {0, 0, 1, 1, 2};
  require_that(plan_job(job.value, servers, {}, 1 << 20).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read =
      parse_request_trace(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!read.ok()) return 0;
  check_trace(read.value);
  if (read.value.requests.size() <= 1000) check_requests_job(read.value);
  return 0;
}
