#include "control/tuner/online/candidates/paired_test.h"

#include <cmath>
#include <limits>

#include "control/experiment/live/analysis/confidence_sequence.h"

namespace paceline::tuner::online {

void PairedTest::add(double difference) {
  ++n;
  const double before = difference - mean;
  mean += before / static_cast<double>(n);
  squares += before * (difference - mean);
}

double PairedTest::sd() const {
  return n < 2 ? 0 : std::sqrt(squares / static_cast<double>(n - 1));
}

experiment::Interval PairedTest::interval(const TestOptions& options) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (n < 2) return {-kInfinity, kInfinity};
  const double reach = experiment::live::sequence_reach(n, sd(), options.alpha, options.tuned_for);
  return {mean - reach, mean + reach};
}

Verdict PairedTest::verdict(const TestOptions& options) const {
  if (n < options.least_pairs) return Verdict::go_on;
  const experiment::Interval known = interval(options);
  if (known.low > 0) return Verdict::accept;
  if (incumbent_breaches * 2 >= n && known.high > 0) return Verdict::accept;
  if (known.high < options.worthwhile || n >= options.most_pairs) return Verdict::drop;
  return Verdict::go_on;
}

}  // namespace paceline::tuner::online
