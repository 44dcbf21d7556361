#include "tools/run/first_tokens.h"

#include <algorithm>

#include "control/experiment/analysis/statistics.h"

namespace paceline::tools {

FirstTokens first_tokens_of(const workload::Job& job, const workload::JobPlan& plan,
                            const std::vector<MessageRecord>& records) {
  FirstTokens out;
  std::vector<double> times;
  for (const workload::JobRequest& request : job.requests) {
    Picos answered = request.arrival;
    for (std::uint32_t i = 0; i < request.receives; ++i) {
      const std::uint32_t end = plan.spans[request.first_receive + i].end;
      answered = later(answered, records[end].completed);
    }
    times.push_back(static_cast<double>((answered - request.arrival).count) / 1e6);
    out.mean_us += times.back();
  }
  if (times.empty()) return out;
  std::sort(times.begin(), times.end());
  out.requests = times.size();
  out.mean_us /= static_cast<double>(times.size());
  out.p50_us = experiment::nearest_rank(times, 0.5);
  out.p99_us = experiment::nearest_rank(times, 0.99);
  return out;
}

}  // namespace paceline::tools
