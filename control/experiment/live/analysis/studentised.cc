#include "control/experiment/live/analysis/studentised.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::experiment::live {

namespace {

double quantile_of(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() + 1) - 1;
  if (position <= 0) return sorted.front();
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= sorted.size()) return sorted.back();
  return sorted[below] +
         (position - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
}

}  // namespace

BootstrapResult studentised_bootstrap(std::span<const double> values, double alpha,
                                      std::uint32_t resamples, std::uint64_t seed,
                                      std::uint64_t stream) {
  if (resamples < 100) throw std::invalid_argument("a bootstrap needs 100 resamples at least");
  const MeanEstimate moments = t_interval(values, 1 - alpha);
  if (moments.method != Method::paired_t) return {moments.interval, moments.p_two_sided()};
  const std::size_t n = values.size();
  const double count = static_cast<double>(n);
  Random random(seed, stream);
  std::vector<double> ts;
  ts.reserve(resamples);
  const double observed = moments.mean / (moments.sd / std::sqrt(count));
  std::uint32_t as_large = 0;
  for (std::uint32_t r = 0; r < resamples; ++r) {
    // About the mean: no cancellation in the squares.
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double u = values[static_cast<std::size_t>(random.below(n))] - moments.mean;
      sum += u;
      squares += u * u;
    }
    const double mean = sum / count;
    const double variance = (squares - count * mean * mean) / (count - 1);
    if (!(variance > 1e-18 * moments.sd * moments.sd)) continue;  // one value n times
    ts.push_back(mean / std::sqrt(variance / count));
    if (std::fabs(ts.back()) >= std::fabs(observed)) ++as_large;
  }
  BootstrapResult out;
  out.p = (as_large + 1.0) / (static_cast<double>(ts.size()) + 1.0);
  if (ts.empty()) return out;  // two values: all resamples may be degenerate
  std::sort(ts.begin(), ts.end());
  const double error = moments.sd / std::sqrt(count);
  out.interval = {moments.mean - quantile_of(ts, 1 - alpha / 2) * error,
                  moments.mean - quantile_of(ts, alpha / 2) * error};
  return out;
}

}  // namespace paceline::experiment::live
