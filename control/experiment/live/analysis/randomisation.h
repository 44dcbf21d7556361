// Inference from nothing but how arms were assigned: under the hypothesis that the candidate
// changes every contrast by the same amount, the data would have been the same under any other
// assignment that the schedule might have drawn, and that gives the distribution of the estimate
// (Fisher 1935; intervals by inversion: Rosenbaum, "Observational Studies", 2.7.2).
#pragma once

#include <cstdint>

#include "control/experiment/live/analysis/pairs.h"

namespace paceline::experiment::live {

inline constexpr std::uint32_t kRedraws = 5000;

struct RandomisationResult {
  double p = kUndefined;  // two-sided, of no effect; never below 1 / (redraws + 1)
  Interval interval;      // of the mean contrast
};

// Tests against `redraws` assignments drawn by the schedule's mechanism.
RandomisationResult randomisation_test(const Contrasts& contrasts, const Schedule& schedule,
                                       double alpha, std::uint64_t seed,
                                       std::uint32_t redraws = kRedraws);

// Switchback with carry-over of order m: a block counts if its last m + 1 arms were the same. The
// estimate is the mean of the candidate's blocks less that of the champion's. Values: one per
// block, NaN if it was discarded. For the interval, an arm's influence on a block is taken to be
// its share of the last m + 1 blocks.
struct CarryoverResult {
  std::uint32_t used[2] = {0, 0};  // blocks, per arm
  double mean = kUndefined;
  RandomisationResult randomised;
};
CarryoverResult carryover_estimate(std::span<const double> values, const Schedule& schedule,
                                   double alpha, std::uint64_t seed,
                                   std::uint32_t redraws = kRedraws);

}  // namespace paceline::experiment::live
