// Runs of an experiment laid out as a grid (scenario x arm x repetition), and the pairs drawn from
// it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/experiment/run_result.h"

namespace paceline::experiment {

// Holds pointers into the runs it was made from.
class RunGrid {
 public:
  // Throws std::invalid_argument for a run that has no place, and for two with the same place.
  RunGrid(std::span<const RunResult> runs, const std::vector<std::string>& scenarios,
          const std::vector<std::string>& arms, std::uint32_t repetitions);

  // nullptr: not done.
  const RunResult* at(std::size_t scenario, std::size_t arm, std::uint32_t repetition) const {
    return cells_[(scenario * arms_ + arm) * repetitions_ + repetition];
  }
  std::uint32_t repetitions() const { return repetitions_; }

 private:
  std::size_t arms_;
  std::uint32_t repetitions_;
  std::vector<const RunResult*> cells_;
};

// One metric of the baseline and of an arm, repetition by repetition.
struct Pairs {
  std::vector<double> baseline;  // NaN where the run is not ok or the metric does not apply
  std::vector<double> treatment;
  std::uint32_t complete = 0;           // both have a value
  std::uint32_t censored_arm = 0;       // the baseline is ok, the arm unfinished
  std::uint32_t censored_baseline = 0;  // the other way round
  std::uint32_t censored_both = 0;
};

// The values are rounded to the digits of the results file.
Pairs pairs_of(const RunGrid& grid, std::size_t scenario, std::size_t arm, Metric metric);

// Per repetition the geometric means over several scenarios. A repetition is complete when it is in
// every scenario and all values are positive; censored for the side that did not finish in any of
// them.
Pairs geometric_pairs(const RunGrid& grid, std::span<const std::size_t> scenarios, std::size_t arm,
                      Metric metric);

// Any run of the two, finished or not, has a value.
bool applies(const RunGrid& grid, std::size_t scenario, std::size_t arm, Metric metric);

}  // namespace paceline::experiment
