#include "control/experiment/live/analysis/randomisation.h"

#include <algorithm>
#include <cmath>

namespace paceline::experiment::live {

namespace {

constexpr std::uint64_t kRedrawStream = 0x4EED;

// The quantile of a sorted sample: `share` of it lies at or below.
double order_statistic(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() + 1) - 1;
  if (position <= 0) return sorted.front();
  const auto below = static_cast<std::size_t>(position);
  return below + 1 >= sorted.size() ? sorted.back() : sorted[below];
}

double p_value(std::uint32_t as_extreme, std::uint32_t redraws) {
  return (as_extreme + 1.0) / (redraws + 1.0);
}

// Difference of means over the blocks whose last m + 1 arms were the same; NaN without both kinds.
double windowed(std::span<const double> values, const Assignment& arms, std::uint32_t m,
                std::uint32_t* used) {
  double sums[2] = {0, 0};
  std::uint32_t counts[2] = {0, 0};
  std::uint32_t same = 0;  // blocks, this one included, since the arm last changed
  for (std::size_t t = 0; t < values.size(); ++t) {
    same = t > 0 && arms[t] == arms[t - 1] ? same + 1 : 1;
    if (same <= m || std::isnan(values[t])) continue;
    sums[arms[t]] += values[t];
    ++counts[arms[t]];
  }
  if (used != nullptr) std::copy(counts, counts + 2, used);
  if (counts[0] == 0 || counts[1] == 0) return kUndefined;
  return sums[1] / counts[1] - sums[0] / counts[0];
}

}  // namespace

RandomisationResult randomisation_test(const Contrasts& contrasts, const Schedule& schedule,
                                       double alpha, std::uint64_t seed, std::uint32_t redraws) {
  RandomisationResult out;
  const std::size_t n = contrasts.means.size();
  if (n < 2) return out;
  const std::uint32_t clusters = schedule.mechanism.clusters;
  double observed = 0;
  for (const double d : contrasts.means) observed += d;
  observed /= static_cast<double>(n);

  Random random(seed, kRedrawStream);
  std::uint32_t as_extreme = 0;
  std::vector<double> ends;  // effects at which a redraw is as large as the observed value
  ends.reserve(redraws);
  const double tolerance = 1e-12 * std::fabs(observed);
  for (std::uint32_t r = 0; r < redraws; ++r) {
    const Assignment drawn = draw_assignment(schedule.mechanism, random);
    // With an effect tau subtracted, the contrasts average to a - b tau under the redraw's signs
    // and to observed - tau under the real ones. The former is larger where tau > (observed - a) /
    // (1 - b).
    double a = 0;
    double b = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t block = std::size_t{2} * contrasts.pairs[i] * clusters;
      double sum = 0;
      std::int64_t signs = 0;
      for (std::uint32_t c = 0; c < clusters; ++c) {
        const bool kept = drawn[block + c] == schedule.arms[block + c];
        sum += kept ? contrasts.by_cluster[i][c] : -contrasts.by_cluster[i][c];
        signs += kept ? 1 : -1;
      }
      a += sum / clusters;
      b += static_cast<double>(signs) / clusters;
    }
    a /= static_cast<double>(n);
    b /= static_cast<double>(n);
    if (std::fabs(a) >= std::fabs(observed) - tolerance) ++as_extreme;
    if (b < 1) ends.push_back((observed - a) / (1 - b));
  }
  out.p = p_value(as_extreme, redraws);
  if (ends.empty()) return out;
  std::sort(ends.begin(), ends.end());
  out.interval = {order_statistic(ends, alpha / 2), order_statistic(ends, 1 - alpha / 2)};
  return out;
}

CarryoverResult carryover_estimate(std::span<const double> values, const Schedule& schedule,
                                   double alpha, std::uint64_t seed, std::uint32_t redraws) {
  CarryoverResult out;
  const std::uint32_t m = schedule.mechanism.carryover;
  out.mean = windowed(values, schedule.arms, m, out.used);
  if (std::isnan(out.mean)) return out;
  // The value without the candidate's effect.
  std::vector<double> plain(values.begin(), values.end());
  for (std::size_t t = 0; t < plain.size(); ++t) {
    double treated = 0;
    for (std::size_t back = 0; back <= m; ++back) {
      treated += schedule.arms[t >= back ? t - back : 0];
    }
    plain[t] -= out.mean * treated / (m + 1.0);
  }
  Random random(seed, kRedrawStream);
  std::uint32_t as_extreme = 0;
  std::vector<double> errors;
  std::uint32_t drawn_well = 0;
  for (std::uint32_t r = 0; r < redraws; ++r) {
    const Assignment drawn = draw_assignment(schedule.mechanism, random);
    const double null = windowed(values, drawn, m, nullptr);
    if (std::isnan(null)) continue;  // a draw from which nothing could be estimated
    ++drawn_well;
    if (std::fabs(null) >= std::fabs(out.mean) * (1 - 1e-12)) ++as_extreme;
    errors.push_back(windowed(plain, drawn, m, nullptr));
  }
  out.randomised.p = p_value(as_extreme, drawn_well);
  if (errors.empty()) return out;
  std::sort(errors.begin(), errors.end());
  out.randomised.interval = {out.mean - order_statistic(errors, 1 - alpha / 2),
                             out.mean - order_statistic(errors, alpha / 2)};
  return out;
}

}  // namespace paceline::experiment::live
