#include "control/tuner/objective.h"

#include <algorithm>
#include <cmath>

#include "control/experiment/text/number_text.h"

namespace paceline::tuner {

using experiment::Metric;
using experiment::MetricValues;

std::vector<Limit> default_limits() { return {{Metric::drops, 0}, {Metric::pfc_pause_us, 0}}; }

double objective_of(const MetricValues& metrics) {
  const double efficiency = metrics[Metric::collective_efficiency];
  if (!std::isnan(efficiency)) return std::log(efficiency);
  double objective = 0;
  const double small = metrics[Metric::slowdown_small_p99];
  if (!std::isnan(small)) objective -= 0.5 * std::log(small);
  const double large = metrics[Metric::slowdown_large_mean];
  if (!std::isnan(large)) objective -= 0.5 * std::log(large);
  if (std::isnan(small) && std::isnan(large)) {
    objective = -std::log(metrics[Metric::slowdown_mean]);
  }
  return objective;
}

Score score(std::span<const experiment::RunResult> runs, std::span<const Limit> limits) {
  Score total;
  const auto breach = [&total](double excess, const std::string& words) {
    if (total.broken_limit.empty()) total.broken_limit = words;
    total.excess += excess;
  };
  for (const experiment::RunResult& run : runs) {
    if (run.status != experiment::RunStatus::ok) {
      breach(10, run.scenario + ": " + run.reason);
      continue;
    }
    total.objective += objective_of(run.metrics);
    const double queue = run.metrics[Metric::queue_max_bytes];
    if (!std::isnan(queue)) total.queue_bytes = std::max(total.queue_bytes, queue);
    for (const Limit& limit : limits) {
      const double value = run.metrics[limit.metric];
      if (std::isnan(value) || value <= limit.most) continue;
      const std::string name(experiment::spec_of(limit.metric).name);
      breach((value - limit.most) / std::max(value, 1.0),
             run.scenario + ": " + name + " " + experiment::number_text(value) + ", at most " +
                 experiment::number_text(limit.most));
    }
  }
  total.objective /= static_cast<double>(runs.size());
  if (!std::isfinite(total.objective)) breach(10, "no message completed");
  return total;
}

bool better(const Score& a, const Score& b) {
  if (a.feasible() != b.feasible()) return a.feasible();
  if (!a.feasible() && a.excess != b.excess) return a.excess < b.excess;
  return a.objective > b.objective;
}

}  // namespace paceline::tuner
