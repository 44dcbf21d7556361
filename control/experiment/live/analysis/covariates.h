// Variance that something measured explains, taken out of paired differences: CUPED (Deng, Xu,
// Kohavi and Walker, WSDM 2013) with covariates that no arm can influence. Random assignment makes
// the expected difference of such a covariate zero, so d - theta x estimates what d does.
//
// Not among them: the previous block of the same arm. In paired differences its mean is the effect
// itself, and taking it out changes the mean by nothing but noise.
#pragma once

#include <span>
#include <vector>

#include "control/experiment/live/analysis/pairs.h"

namespace paceline::experiment::live {

// Differences of covariates, pair by pair: [pair][covariate]. The covariates are the log of the
// offered load, and the share of short messages among those begun. Empty if a pair lacks one.
std::vector<std::vector<double>> covariates_of(const PairTable& table, const Contrasts& contrasts);

struct Adjusted {
  std::vector<double> values;  // d - theta x, its spread corrected for the coefficients estimated;
                               // d itself where there is nothing to adjust
  std::vector<double> theta;   // least squares with an intercept
  double explained = 0;        // share of the variance taken out
};
// A covariate that hardly varies, or follows from the others, is left out (theta 0). Nothing is
// adjusted below eight pairs per covariate.
Adjusted adjust(std::span<const double> values, const std::vector<std::vector<double>>& covariates);

}  // namespace paceline::experiment::live
