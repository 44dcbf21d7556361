#include "control/experiment/analysis/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "control/experiment/analysis/statistics.h"
#include "control/experiment/text/number_text.h"
#include "dataplane/base/numbers/math.h"

namespace paceline::experiment {
namespace {

std::size_t place_of(const std::vector<std::string>& names, const std::string& name,
                     std::string_view what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw std::invalid_argument(fmt::format("a run of unknown {} '{}'", what, name));
  }
  return static_cast<std::size_t>(found - names.begin());
}

double value_of(const RunResult* run, Metric metric) {
  if (run == nullptr || run->status != RunStatus::ok) return kUndefined;
  return rounded(run->metrics[metric]);
}

bool finished(const RunResult* run) { return run != nullptr && run->status == RunStatus::ok; }
bool unfinished(const RunResult* run) {
  return run != nullptr && run->status == RunStatus::unfinished;
}

void count(Pairs& pairs, double baseline, double treatment) {
  pairs.baseline.push_back(baseline);
  pairs.treatment.push_back(treatment);
  if (!std::isnan(baseline) && !std::isnan(treatment)) ++pairs.complete;
}

}  // namespace

RunGrid::RunGrid(std::span<const RunResult> runs, const std::vector<std::string>& scenarios,
                 const std::vector<std::string>& arms, std::uint32_t repetitions)
    : arms_(arms.size()),
      repetitions_(repetitions),
      cells_(scenarios.size() * arms.size() * repetitions) {
  for (const RunResult& run : runs) {
    const std::size_t scenario = place_of(scenarios, run.scenario, "scenario");
    const std::size_t arm = place_of(arms, run.arm, "arm");
    if (run.repetition >= repetitions) {
      throw std::invalid_argument(
          fmt::format("a run of repetition {}, but there are {} (counted from 0)", run.repetition,
                      repetitions));
    }
    const RunResult*& cell = cells_[(scenario * arms_ + arm) * repetitions_ + run.repetition];
    if (cell != nullptr) {
      throw std::invalid_argument(fmt::format("two runs of scenario '{}', arm '{}', repetition {}",
                                              run.scenario, run.arm, run.repetition));
    }
    for (const MetricSpec& spec : metric_table()) {
      if (std::isinf(run.metrics[spec.metric])) {
        throw std::invalid_argument(
            fmt::format("scenario '{}', arm '{}', repetition {}: {} is infinite", run.scenario,
                        run.arm, run.repetition, spec.name));
      }
    }
    cell = &run;
  }
}

Pairs pairs_of(const RunGrid& grid, std::size_t scenario, std::size_t arm, Metric metric) {
  Pairs pairs;
  for (std::uint32_t r = 0; r < grid.repetitions(); ++r) {
    const RunResult* baseline = grid.at(scenario, 0, r);
    const RunResult* treatment = grid.at(scenario, arm, r);
    pairs.censored_arm += finished(baseline) && unfinished(treatment);
    pairs.censored_baseline += unfinished(baseline) && finished(treatment);
    pairs.censored_both += unfinished(baseline) && unfinished(treatment);
    count(pairs, value_of(baseline, metric), value_of(treatment, metric));
  }
  return pairs;
}

Pairs geometric_pairs(const RunGrid& grid, std::span<const std::size_t> scenarios, std::size_t arm,
                      Metric metric) {
  Pairs pairs;
  for (std::uint32_t r = 0; r < grid.repetitions(); ++r) {
    struct Side {
      double log_sum = 0;
      bool done = true;       // every run exists and did not fail
      bool censored = false;  // and one of them did not finish
    };
    const auto gather = [&](std::size_t which) {
      Side side;
      for (const std::size_t scenario : scenarios) {
        const RunResult* run = grid.at(scenario, which, r);
        side.done = side.done && (finished(run) || unfinished(run));
        side.censored = side.censored || unfinished(run);
        const double value = value_of(run, metric);
        side.log_sum += value > 0 ? det_log(value) : kUndefined;
      }
      return side;
    };
    const Side baseline = gather(0);
    const Side treatment = gather(arm);
    if (baseline.done && treatment.done) {
      pairs.censored_arm += !baseline.censored && treatment.censored;
      pairs.censored_baseline += baseline.censored && !treatment.censored;
      pairs.censored_both += baseline.censored && treatment.censored;
    }
    const double n = static_cast<double>(scenarios.size());
    count(pairs, det_exp(baseline.log_sum / n), det_exp(treatment.log_sum / n));
  }
  return pairs;
}

bool applies(const RunGrid& grid, std::size_t scenario, std::size_t arm, Metric metric) {
  const auto has_value = [metric](const RunResult* run) {
    return run != nullptr && !std::isnan(run->metrics[metric]);
  };
  for (std::uint32_t r = 0; r < grid.repetitions(); ++r) {
    if (has_value(grid.at(scenario, 0, r)) || has_value(grid.at(scenario, arm, r))) return true;
  }
  return false;
}

}  // namespace paceline::experiment
