#include "control/experiment/analysis/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "control/experiment/analysis/statistics.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::experiment {

BcaBootstrap::BcaBootstrap(std::span<const double> values, std::uint32_t resamples,
                           std::uint64_t seed, std::uint64_t stream)
    : means_(resamples) {
  const std::size_t n = values.size();
  const double count = static_cast<double>(n);
  Random random(seed, stream);
  for (double& mean : means_) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += values[random.below(n)];
    mean = sum / count;
  }
  std::sort(means_.begin(), means_.end());

  const double observed = std::accumulate(values.begin(), values.end(), 0.0) / count;
  bias_ = normal_quantile(share_below(observed));
  // Leaving value i out moves the mean by (mean - value) / (n - 1); the constant cancels.
  double squares = 0;
  double cubes = 0;
  for (const double value : values) {
    const double u = value - observed;
    squares += u * u;
    cubes += u * u * u;
  }
  acceleration_ = cubes / (6 * squares * std::sqrt(squares));

  // endpoint(level) = 0 solved for the level.
  const double w = normal_quantile(share_below(0)) - bias_;
  const double denominator = 1 + acceleration_ * w;
  const double z = denominator > 0 ? w / denominator - bias_ : (w > 0 ? 40.0 : -40.0);
  const double least = 1 / (static_cast<double>(resamples) + 1);
  p_positive_ = std::clamp(normal_cdf(z), least, 1 - least);
}

double BcaBootstrap::share_below(double value) const {
  const auto [first, last] = std::equal_range(means_.begin(), means_.end(), value);
  const double below = static_cast<double>(first - means_.begin());
  const double equal = static_cast<double>(last - first);
  const double total = static_cast<double>(means_.size());
  return std::clamp((below + equal / 2) / total, 1 / (total + 1), total / (total + 1));
}

double BcaBootstrap::endpoint(double level) const {
  const double shifted = bias_ + normal_quantile(level);
  const double denominator = 1 - acceleration_ * shifted;
  // |a| < 1/6 for a mean, so this takes a level beyond 1 - 10^-9; the end is then the extreme.
  if (denominator <= 0) return shifted > 0 ? means_.back() : means_.front();
  const double share = normal_cdf(bias_ + shifted / denominator);
  const double position = share * static_cast<double>(means_.size() + 1) - 1;
  if (position <= 0) return means_.front();
  const std::size_t below = static_cast<std::size_t>(position);
  if (below + 1 >= means_.size()) return means_.back();
  const double fraction = position - static_cast<double>(below);
  return means_[below] + fraction * (means_[below + 1] - means_[below]);
}

}  // namespace paceline::experiment
