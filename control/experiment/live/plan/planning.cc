#include "control/experiment/live/plan/planning.h"

#include <algorithm>
#include <boost/math/distributions/non_central_t.hpp>
#include <cmath>
#include <stdexcept>

#include "control/experiment/analysis/statistics.h"
#include "dataplane/base/numbers/math.h"

namespace paceline::experiment::live {

double log_effect(double share) { return det_log(1 + share); }

std::uint32_t pairs_needed(double effect, double sd, double alpha, double power,
                           std::uint32_t least) {
  if (!(effect > 0) || !(sd >= 0)) {
    throw std::invalid_argument("planning needs an effect above 0 and a spread");
  }
  constexpr std::uint32_t kMost = 1'000'000;
  std::uint32_t low = std::max<std::uint32_t>(2, least);
  std::uint32_t high = low;
  const auto enough = [&](std::uint32_t n) {
    return minimum_detectable_mean(sd, n, alpha, power) <= effect;
  };
  while (high < kMost && !enough(high)) high *= 2;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (enough(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

double power_of(double effect, double sd, std::uint32_t pairs, double alpha) {
  if (pairs < 2) return 0;
  if (sd == 0) return effect == 0 ? alpha : 1;
  const double freedom = pairs - 1.0;
  const double reach = t_quantile(1 - alpha / 2, freedom);
  const double shift = std::fabs(effect) / sd * std::sqrt(static_cast<double>(pairs));
  if (shift == 0) return alpha;
  const boost::math::non_central_t law(freedom, shift);
  return boost::math::cdf(boost::math::complement(law, reach)) + boost::math::cdf(law, -reach);
}

}  // namespace paceline::experiment::live
