// Evaluates candidates of a parameter search: every scenario under every seed, as tasks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/experiment/run_result.h"
#include "control/tuner/search_record.h"
#include "dataplane/config/scenario.h"
#include "tools/run/scenario_run.h"
#include "tools/task/run/workers.h"

namespace paceline::tools {

class SearchRunner {
 public:
  // `arm` gives algorithm, profile and fallback; a candidate's values of the searched parameters
  // go on top. All must outlive the runner.
  SearchRunner(const std::vector<PreparedScenario>& scenarios, const config::CcConfig& arm,
               const cc::AlgorithmInfo& algorithm, const tuner::SearchSpace& space,
               std::span<const tuner::Limit> limits, const Workers& workers)
      : scenarios_(scenarios),
        arm_(arm),
        algorithm_(algorithm),
        space_(space),
        limits_(limits),
        workers_(workers) {}

  // Scores of the candidates, in their order; the number of threads does not change them. Empty
  // when interrupted. A parameter set that the algorithm refuses, or a scenario that cannot be
  // built, scores as outside the limits with the reason.
  std::vector<tuner::Score> evaluate(std::span<const std::vector<double>> candidates,
                                     std::span<const std::uint64_t> seeds) const;

  config::CcConfig config_of(std::span<const double> values) const;

 private:
  const std::vector<PreparedScenario>& scenarios_;
  const config::CcConfig& arm_;
  const cc::AlgorithmInfo& algorithm_;
  const tuner::SearchSpace& space_;
  std::span<const tuner::Limit> limits_;
  Workers workers_;
};

}  // namespace paceline::tools
