// Inference for paired experiments. The datum is one repetition (a pair of runs with the same
// seed), never a flow: flows of one run share queues and are not independent.
//
// Logarithms and exponentials are those of base/numbers/math.h, and random draws are integers: the
// same everywhere. Quantiles and distribution functions come from Boost.Math, which uses libm:
// intervals and p-values may differ in the last bits between C libraries and CPUs. Round them
// before writing them to a file that is compared by its hash (number_text.h).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "control/experiment/metrics.h"

namespace paceline::experiment {

inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

struct Interval {
  double low = kUndefined;
  double high = kUndefined;
};

enum class Method : std::uint8_t {
  none,           // fewer than two values: no interval, no test
  paired_t,       // Student's t with n - 1 degrees of freedom
  bca_bootstrap,  // bias-corrected and accelerated bootstrap (Efron 1987)
  identical,      // all values equal: the interval is that value; p from the sign-flip test, 2^-n
};

// Inference about the mean of independent values.
struct MeanEstimate {
  Method method = Method::none;
  std::uint32_t n = 0;
  double mean = kUndefined;
  double sd = kUndefined;          // with n - 1; undefined for n < 2
  Interval interval;               // two-sided
  double p_positive = kUndefined;  // one-sided p of "the mean is > 0"
  double p_negative = kUndefined;  // one-sided p of "the mean is < 0"
  double p_two_sided() const;      // 2 x the smaller of the two, at most 1
};

struct InferenceOptions {
  double confidence = 0.95;           // 0.5 .. 0.9999
  std::uint32_t bootstrap_from = 20;  // values from which the bootstrap replaces the t
  std::uint32_t resamples = 10'000;
  std::uint64_t seed = 1;    // of the bootstrap
  std::uint64_t stream = 0;  // one per comparison: the result does not depend on order
  double power = 0.8;        // of the minimum detectable effect
};

MeanEstimate t_interval(std::span<const double> values, double confidence);

// Needs two values at least. Endpoints are interpolated between order statistics. A p-value is the
// level at which the interval would just touch 0, and never below 1 / (resamples + 1).
MeanEstimate bca_interval(std::span<const double> values, double confidence,
                          std::uint32_t resamples, std::uint64_t seed, std::uint64_t stream);

// t below options.bootstrap_from values, BCa from there on.
MeanEstimate infer_mean(std::span<const double> values, const InferenceOptions& options);

// Two arms compared pair by pair.
struct PairedEffect {
  Compare scale = Compare::ratio;
  bool fell_back = false;             // a ratio was asked for, but a value was zero or negative
  std::uint32_t missing = 0;          // pairs of which a value is NaN; not in the estimate
  double baseline_mean = kUndefined;  // arithmetic means over the complete pairs
  double treatment_mean = kUndefined;
  double effect = kUndefined;  // ratio: exp(mean log ratio) - 1; difference: mean difference
  Interval interval;           // of `effect`
  double minimum_detectable = kUndefined;  // same scale as effect, > 0
  MeanEstimate estimate;                   // on the scale of the test: log ratios or differences
};

// `baseline[i]` and `treatment[i]` are the same repetition; NaN = missing. Throws
// std::invalid_argument when the lengths differ or a value is infinite.
PairedEffect paired_effect(std::span<const double> baseline, std::span<const double> treatment,
                           Compare preferred, const InferenceOptions& options);

// The smallest true mean that a two-sided t test of n values at level alpha finds with this power
// (approximation by the sum of two t quantiles; 3 % low at n = 6, better above).
double minimum_detectable_mean(double sd, std::uint32_t n, double alpha, double power);

// The smallest value with at least q of all values at or below it; sorted input, not empty.
double nearest_rank(std::span<const double> sorted, double q);

// Two-sided exact sign test.
double sign_test(std::uint32_t positive, std::uint32_t negative);

// Adjusted p-values in the order given; NaN stays NaN and does not count as a test.
std::vector<double> holm(std::span<const double> p_values);
std::vector<double> benjamini_hochberg(std::span<const double> p_values);

double normal_quantile(double probability);  // 0 < probability < 1
double normal_cdf(double z);
double t_quantile(double probability, double degrees_of_freedom);
double t_cdf(double t, double degrees_of_freedom);

std::string_view to_text(Method method);  // "none", "paired t", "BCa bootstrap", "identical values"

}  // namespace paceline::experiment
