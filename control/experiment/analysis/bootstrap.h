// The bias-corrected and accelerated bootstrap of a mean (Efron, "Better Bootstrap Confidence
// Intervals", JASA 82, 1987; Efron and Tibshirani 1993, chapter 14). Second-order correct where a t
// interval is only first-order: it follows the skewness of the data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline::experiment {

class BcaBootstrap {
 public:
  // `values`: two or more, not all equal. Draws `resamples` x values.size() numbers from
  // Random(seed, stream): the same on every machine.
  BcaBootstrap(std::span<const double> values, std::uint32_t resamples, std::uint64_t seed,
               std::uint64_t stream);

  // The value that a one-sided BCa interval of this level ends at: 0.025 gives the lower and 0.975
  // the upper end of the 95 % interval. Linear between order statistics, so that a last-bit change
  // of a quantile moves it by as little.
  double endpoint(double level) const;

  // One-sided p-values: the level at which the interval would just touch 0.
  double p_positive() const { return p_positive_; }
  double p_negative() const { return 1 - p_positive_; }

  double bias() const { return bias_; }                  // z0
  double acceleration() const { return acceleration_; }  // a, from the jackknife

 private:
  double share_below(double value) const;  // of the resampled means; ties count half; never 0 or 1

  std::vector<double> means_;  // ascending
  double bias_ = 0;
  double acceleration_ = 0;
  double p_positive_ = 0;
};

}  // namespace paceline::experiment
