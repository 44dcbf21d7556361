#include "control/experiment/live/analysis/confidence_sequence.h"

#include <cmath>
#include <stdexcept>

#include "dataplane/base/numbers/math.h"

namespace paceline::experiment::live {

namespace {

// Mean and sum of squared deviations of values that come one by one (Welford 1962).
class Running {
 public:
  void add(double value) {
    ++n_;
    const double before = value - mean_;
    mean_ += before / static_cast<double>(n_);
    squares_ += before * (value - mean_);
  }
  SequencePoint point(double alpha, double tuned_for) const {
    SequencePoint out;
    out.n = n_;
    if (n_ == 0) return out;
    out.mean = mean_;
    if (n_ < 2) return out;
    out.sd = std::sqrt(squares_ / (static_cast<double>(n_) - 1));
    const double reach = sequence_reach(n_, out.sd, alpha, tuned_for);
    out.interval = {mean_ - reach, mean_ + reach};
    return out;
  }

 private:
  std::uint32_t n_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

}  // namespace

double sequence_reach(std::uint64_t n, double sd, double alpha, double tuned_for) {
  if (n == 0 || !(alpha > 0 && alpha < 1) || !(tuned_for > 0)) {
    throw std::invalid_argument("a confidence sequence needs n >= 1, 0 < alpha < 1, n* > 0");
  }
  const double surprise = -2 * det_log(alpha);
  const double r2 = (surprise + det_log(surprise + 1)) / tuned_for;
  const double count = static_cast<double>(n);
  const double grown = count * r2 + 1;
  return sd * std::sqrt(2 * grown / (count * count * r2) * det_log(std::sqrt(grown) / alpha));
}

SequencePoint sequence_at(std::span<const double> values, double alpha, double tuned_for) {
  Running running;
  for (const double value : values) running.add(value);
  return running.point(alpha, tuned_for);
}

std::vector<SequencePoint> sequence_of(std::span<const double> values, double alpha,
                                       double tuned_for) {
  std::vector<SequencePoint> out;
  out.reserve(values.size());
  Running running;
  for (const double value : values) {
    running.add(value);
    out.push_back(running.point(alpha, tuned_for));
  }
  return out;
}

Interval one_sided_bounds(std::span<const double> values, double alpha, double tuned_for) {
  return sequence_at(values, 2 * alpha, tuned_for).interval;
}

}  // namespace paceline::experiment::live
