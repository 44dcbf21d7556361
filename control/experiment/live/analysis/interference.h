// Interference between arms that share a network: naive, spilled-over and total effect side by
// side; and carry-over from one block to the next.
#pragma once

#include "control/experiment/live/analysis/analysis.h"

namespace paceline::experiment::live {

Interference measure_interference(const PairTable& table, BlockMetric metric, double alpha);

// Blocks of switchbacks without modelled carry-over.
CarryoverCheck check_carryover(const PairTable& table, const Schedule& schedule,
                               BlockMetric metric);

// Two independent samples (Welch 1947): interval of mean(b) - mean(a).
struct WelchResult {
  double difference = kUndefined;
  Interval interval;
  double p = kUndefined;
};
WelchResult welch(std::span<const double> a, std::span<const double> b, double alpha);

}  // namespace paceline::experiment::live
