// Draws from continuous distributions. std::*_distribution leaves its algorithm to the standard
// library, so results would change with it; these depend on Random and det_log only.
#pragma once

#include <cmath>

#include "dataplane/base/numbers/math.h"
#include "dataplane/base/numbers/random.h"

namespace paceline {

// Exponential with the given mean (>= 0); one draw. At most about 36.7 means.
inline double exponential(Random& random, double mean) {
  return -mean * det_log(1.0 - random.uniform());
}

// Normal with mean 0 and variance 1 (Marsaglia's polar method, SIAM Review 6(3), 1964). The second
// value of each pair is dropped, so that no state is hidden between calls; 2.55 draws on average.
inline double standard_normal(Random& random) {
  for (;;) {
    const double u = 2.0 * random.uniform() - 1.0;
    const double v = 2.0 * random.uniform() - 1.0;
    const double s = u * u + v * v;
    if (s > 0.0 && s < 1.0) return u * std::sqrt(-2.0 * det_log(s) / s);
  }
}

}  // namespace paceline
