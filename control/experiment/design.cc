#include "control/experiment/design.h"

#include "dataplane/base/numbers/random.h"

namespace paceline::experiment {

std::uint64_t repetition_seed(std::uint64_t experiment_seed, std::uint32_t repetition) {
  return mix64(experiment_seed + (std::uint64_t{repetition} + 1) * 0x9E37'79B9'7F4A'7C15U) >> 11;
}

std::vector<PlannedRun> paired_replay(std::uint32_t scenarios, std::uint32_t arms,
                                      std::uint32_t repetitions, std::uint64_t experiment_seed) {
  std::vector<PlannedRun> runs;
  runs.reserve(std::size_t{scenarios} * arms * repetitions);
  for (std::uint32_t repetition = 0; repetition < repetitions; ++repetition) {
    const std::uint64_t seed = repetition_seed(experiment_seed, repetition);
    for (std::uint32_t scenario = 0; scenario < scenarios; ++scenario) {
      for (std::uint32_t arm = 0; arm < arms; ++arm) {
        runs.push_back({scenario, arm, repetition, seed});
      }
    }
  }
  return runs;
}

std::vector<PlannedRun> paired_replay(const config::Experiment& experiment) {
  return paired_replay(static_cast<std::uint32_t>(experiment.scenarios.size()),
                       static_cast<std::uint32_t>(experiment.arms.size()), experiment.repetitions,
                       experiment.seed);
}

}  // namespace paceline::experiment
