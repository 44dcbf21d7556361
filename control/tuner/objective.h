// The value of a parameter set, and the limits that it must keep. Goodput alone would teach a
// search to switch congestion control off, so the queue and loss limits are hard: a candidate that
// breaks one is refused whatever it gains.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "control/experiment/metrics.h"
#include "control/experiment/run_result.h"

namespace paceline::tuner {

// No run may have more of `metric` than this.
struct Limit {
  experiment::Metric metric{};
  double most = 0;
};

// Limits that hold unless the user says otherwise: no drops, and no pauses to speak of.
std::vector<Limit> default_limits();

struct Score {
  double objective = 0;      // higher is better; mean over the runs
  double excess = 0;         // 0: within all limits; otherwise the sum of relative excesses
  double queue_bytes = 0;    // largest last-hop queue of all runs
  std::string broken_limit;  // in words, of the first limit broken
  bool feasible() const { return excess == 0; }
};

// Objective of one run: log(collective efficiency) where there is a collective; otherwise
// -0.5 log(p99 slowdown of messages up to 64 KiB) - 0.5 log(mean slowdown of messages beyond
// 1 MiB), each term where it applies: the short must not wait and the long must get the bandwidth.
double objective_of(const experiment::MetricValues& metrics);

// Requires that `runs` is not empty. A run that did not finish breaks a limit of its own.
Score score(std::span<const experiment::RunResult> runs, std::span<const Limit> limits);

// a is the better candidate: feasible before infeasible, then by objective, then by excess.
bool better(const Score& a, const Score& b);

}  // namespace paceline::tuner
