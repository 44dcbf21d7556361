// The studentised bootstrap of a mean (Hall, "The Bootstrap and Edgeworth Expansion", 1992, 3.5):
// resampled pairs give the distribution of (mean* - mean) / standard error*, which replaces
// Student's. With a dozen to some dozens of pairs its error rate is the nominal one; the BCa
// interval, which ignores degrees of freedom, errs in 6 to 8 % at nominal 5 %.
#pragma once

#include <cstdint>
#include <span>

#include "control/experiment/analysis/statistics.h"

namespace paceline::experiment::live {

struct BootstrapResult {
  Interval interval;      // two-sided, equal tails
  double p = kUndefined;  // two-sided, of mean 0: resamples with a larger |t|; never 0
};

// Two values or more; all equal: the interval is that value, and p that of the sign-flip test.
BootstrapResult studentised_bootstrap(std::span<const double> values, double alpha,
                                      std::uint32_t resamples, std::uint64_t seed,
                                      std::uint64_t stream);

}  // namespace paceline::experiment::live
