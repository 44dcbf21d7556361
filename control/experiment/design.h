// The paired-replay design, the lowest and most powerful rung of the experiment ladder: every arm
// replays the same arrivals (same seed, same scenario) in virtual time. A repetition is then a
// pair, and what the arms share cancels in the difference.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/config/scenario.h"

namespace paceline::experiment {

struct PlannedRun {
  std::uint32_t scenario = 0;    // index into Experiment::scenarios
  std::uint32_t arm = 0;         // index into Experiment::arms; 0 is the baseline
  std::uint32_t repetition = 0;  // from 0
  std::uint64_t seed = 0;        // Scenario::seed of the run
};

// Seed of a repetition: output number `repetition` (from 0) of the SplitMix64 generator started at
// `experiment_seed` (Steele, Lea, Flood, OOPSLA 2014), shifted right by 11. 53 bits, so that it
// passes unharmed through JSON tools that keep numbers as doubles, and fits a TOML integer. It
// depends neither on the arm nor on the scenario: `paceline emulate --seed` with this number
// repeats the run.
std::uint64_t repetition_seed(std::uint64_t experiment_seed, std::uint32_t repetition);

// All runs in the order in which they should be started: repetition by repetition, and within one
// scenario by scenario with its arms side by side. An interrupted experiment then leaves whole
// repetitions, and arms meet the same state of the machine. Results belong at the index of their
// planned run, whatever the order in which jobs finish.
std::vector<PlannedRun> paired_replay(std::uint32_t scenarios, std::uint32_t arms,
                                      std::uint32_t repetitions, std::uint64_t experiment_seed);
std::vector<PlannedRun> paired_replay(const config::Experiment& experiment);

}  // namespace paceline::experiment
