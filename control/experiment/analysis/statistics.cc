#include "control/experiment/analysis/statistics.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include "control/experiment/analysis/bootstrap.h"
#include "dataplane/base/numbers/math.h"

namespace paceline::experiment {
namespace {

void check_confidence(double confidence) {
  if (!(confidence >= 0.5 && confidence <= 0.9999)) {
    throw std::invalid_argument("confidence must be between 0.5 and 0.9999");
  }
}

// Mean and standard deviation, and the cases that need no distribution: fewer than two values, or
// all equal. Returns true when the estimate is complete.
bool describe(std::span<const double> values, MeanEstimate& estimate) {
  estimate.n = static_cast<std::uint32_t>(values.size());
  if (values.empty()) return true;
  const double n = static_cast<double>(values.size());
  estimate.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() < 2) return true;
  double squares = 0;
  double largest = 0;
  for (const double value : values) {
    squares += (value - estimate.mean) * (value - estimate.mean);
    largest = std::max(largest, std::fabs(value));
  }
  estimate.sd = std::sqrt(squares / (n - 1));
  // Equal up to the rounding of the logarithms: a t of 10^15 would be an artefact.
  if (estimate.sd > 1e-12 * largest) return false;
  estimate.method = Method::identical;
  estimate.sd = 0;
  estimate.interval = {estimate.mean, estimate.mean};
  // Under "no effect" every difference is as likely to have the other sign.
  const double all_one_sign =
      std::ldexp(1.0, -static_cast<int>(std::min<std::size_t>(values.size(), 1000)));
  estimate.p_positive = estimate.mean > 0 ? all_one_sign : 1;
  estimate.p_negative = estimate.mean < 0 ? all_one_sign : 1;
  return true;
}

// Order of p-values, smallest first; NaN left out.
std::vector<std::size_t> ascending(std::span<const double> p_values) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p_values.size(); ++i) {
    if (!std::isnan(p_values[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  return order;
}

}  // namespace

double normal_quantile(double probability) {
  return boost::math::quantile(boost::math::normal(), probability);
}

double normal_cdf(double z) { return boost::math::cdf(boost::math::normal(), z); }

double t_quantile(double probability, double degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), probability);
}

double t_cdf(double t, double degrees_of_freedom) {
  return boost::math::cdf(boost::math::students_t(degrees_of_freedom), t);
}

double MeanEstimate::p_two_sided() const {
  if (std::isnan(p_positive)) return kUndefined;  // std::min would lose it
  return std::min(1.0, 2 * std::min(p_positive, p_negative));
}

MeanEstimate t_interval(std::span<const double> values, double confidence) {
  check_confidence(confidence);
  MeanEstimate estimate;
  if (describe(values, estimate)) return estimate;
  const double freedom = static_cast<double>(values.size() - 1);
  const double error = estimate.sd / std::sqrt(static_cast<double>(values.size()));
  const double reach = t_quantile(0.5 + confidence / 2, freedom) * error;
  const double t = estimate.mean / error;
  estimate.method = Method::paired_t;
  estimate.interval = {estimate.mean - reach, estimate.mean + reach};
  estimate.p_positive = t_cdf(-t, freedom);
  estimate.p_negative = t_cdf(t, freedom);
  return estimate;
}

MeanEstimate bca_interval(std::span<const double> values, double confidence,
                          std::uint32_t resamples, std::uint64_t seed, std::uint64_t stream) {
  check_confidence(confidence);
  if (resamples < 100) throw std::invalid_argument("a bootstrap needs 100 resamples at least");
  MeanEstimate estimate;
  if (describe(values, estimate)) return estimate;
  const BcaBootstrap bootstrap(values, resamples, seed, stream);
  estimate.method = Method::bca_bootstrap;
  estimate.interval = {bootstrap.endpoint((1 - confidence) / 2),
                       bootstrap.endpoint(0.5 + confidence / 2)};
  estimate.p_positive = bootstrap.p_positive();
  estimate.p_negative = bootstrap.p_negative();
  return estimate;
}

MeanEstimate infer_mean(std::span<const double> values, const InferenceOptions& options) {
  if (values.size() < options.bootstrap_from) return t_interval(values, options.confidence);
  return bca_interval(values, options.confidence, options.resamples, options.seed, options.stream);
}

PairedEffect paired_effect(std::span<const double> baseline, std::span<const double> treatment,
                           Compare preferred, const InferenceOptions& options) {
  if (baseline.size() != treatment.size()) {
    throw std::invalid_argument("paired samples of different length");
  }
  PairedEffect result;
  std::vector<double> a, b;
  bool positive = true;
  for (std::size_t i = 0; i < baseline.size(); ++i) {
    if (std::isinf(baseline[i]) || std::isinf(treatment[i])) {
      throw std::invalid_argument("an infinite value in a paired sample");
    }
    if (std::isnan(baseline[i]) || std::isnan(treatment[i])) {
      ++result.missing;
      continue;
    }
    a.push_back(baseline[i]);
    b.push_back(treatment[i]);
    positive = positive && baseline[i] > 0 && treatment[i] > 0;
  }
  result.scale = preferred == Compare::ratio && positive ? Compare::ratio : Compare::difference;
  result.fell_back = preferred == Compare::ratio && !positive;
  if (a.empty()) return result;

  const bool ratio = result.scale == Compare::ratio;
  std::vector<double> d(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) {
      d[i] = 0;
    } else {
      d[i] = ratio ? det_log(b[i]) - det_log(a[i]) : b[i] - a[i];
    }
  }
  const double n = static_cast<double>(a.size());
  result.baseline_mean = std::accumulate(a.begin(), a.end(), 0.0) / n;
  result.treatment_mean = std::accumulate(b.begin(), b.end(), 0.0) / n;
  result.estimate = infer_mean(d, options);
  const auto on_effect_scale = [ratio](double x) { return ratio ? det_exp(x) - 1 : x; };
  result.effect = on_effect_scale(result.estimate.mean);
  result.interval = {on_effect_scale(result.estimate.interval.low),
                     on_effect_scale(result.estimate.interval.high)};
  result.minimum_detectable = on_effect_scale(minimum_detectable_mean(
      result.estimate.sd, result.estimate.n, 1 - options.confidence, options.power));
  return result;
}

double minimum_detectable_mean(double sd, std::uint32_t n, double alpha, double power) {
  if (n < 2) return kUndefined;
  const double freedom = n - 1.0;
  return (t_quantile(1 - alpha / 2, freedom) + t_quantile(power, freedom)) * sd /
         std::sqrt(static_cast<double>(n));
}

double nearest_rank(std::span<const double> sorted, double q) {
  const auto n = static_cast<double>(sorted.size());
  auto rank = static_cast<std::size_t>(q * n);
  if (static_cast<double>(rank) < q * n) ++rank;
  return sorted[std::min(sorted.size() - 1, rank == 0 ? 0 : rank - 1)];
}

double sign_test(std::uint32_t positive, std::uint32_t negative) {
  const std::uint32_t n = positive + negative;
  if (n == 0) return 1;
  const boost::math::binomial coin(n, 0.5);
  return std::min(1.0, 2 * boost::math::cdf(coin, std::min(positive, negative)));
}

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<double> adjusted(p_values.begin(), p_values.end());
  const std::vector<std::size_t> order = ascending(p_values);
  double running = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double scaled = p_values[order[rank]] * static_cast<double>(order.size() - rank);
    running = std::max(running, std::min(1.0, scaled));
    adjusted[order[rank]] = running;
  }
  return adjusted;
}

std::vector<double> benjamini_hochberg(std::span<const double> p_values) {
  std::vector<double> adjusted(p_values.begin(), p_values.end());
  const std::vector<std::size_t> order = ascending(p_values);
  double running = 1;
  for (std::size_t rank = order.size(); rank-- > 0;) {
    const double scaled =
        p_values[order[rank]] * static_cast<double>(order.size()) / static_cast<double>(rank + 1);
    running = std::min(running, scaled);
    adjusted[order[rank]] = running;
  }
  return adjusted;
}

std::string_view to_text(Method method) {
  switch (method) {
    case Method::none:
      return "none";
    case Method::paired_t:
      return "paired t";
    case Method::bca_bootstrap:
      return "BCa bootstrap";
    case Method::identical:
      return "identical values";
  }
  return "?";
}

}  // namespace paceline::experiment
