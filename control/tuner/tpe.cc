#include "control/tuner/tpe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "dataplane/base/numbers/distributions.h"

namespace paceline::tuner {

namespace {

constexpr double kLeastWidth = 0.01;

}  // namespace

Tpe::Tpe(std::size_t dimensions, std::uint64_t seed, TpeOptions options)
    : dimensions_(dimensions), random_(seed), options_(options) {
  // A Latin hypercube: every stratum of every axis once.
  for (std::size_t d = 0; d < dimensions_; ++d) {
    std::vector<std::uint32_t> order(options_.initial);
    std::iota(order.begin(), order.end(), 0U);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random_.below(i)]);
    }
    start_.push_back(std::move(order));
  }
}

// One kernel width per axis for the points [begin, end): the normal reference rule.
Tpe::Widths Tpe::widths(std::size_t begin, std::size_t end) const {
  const auto n = static_cast<double>(end - begin);
  const double shrink = std::pow(n, -1.0 / (static_cast<double>(dimensions_) + 4));
  Widths w(dimensions_);
  for (std::size_t d = 0; d < dimensions_; ++d) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const double x = told_[i].point[d];
      sum += x;
      squares += x * x;
    }
    const double variance = std::max(0.0, squares / n - (sum / n) * (sum / n));
    w[d] = std::max(kLeastWidth, 1.06 * std::sqrt(variance) * shrink);
  }
  return w;
}

// Log of the kernel density of the points [begin, end) at x, up to a constant.
double Tpe::log_density(const std::vector<double>& x, std::size_t begin, std::size_t end,
                        const Widths& w) const {
  double sum = 1e-32;
  for (std::size_t i = begin; i < end; ++i) {
    double exponent = 0;
    for (std::size_t d = 0; d < dimensions_; ++d) {
      const double z = (x[d] - told_[i].point[d]) / w[d];
      exponent -= 0.5 * z * z;
    }
    sum += std::exp(exponent);
  }
  double log = std::log(sum / static_cast<double>(end - begin));
  for (const double width : w) log -= std::log(width);
  return log;
}

// A normal draw, repeated until it lies within [0, 1].
double Tpe::drawn_near(double centre, double width) {
  for (;;) {
    const double x = centre + width * standard_normal(random_);
    if (x >= 0 && x <= 1) return x;
  }
}

std::vector<double> Tpe::ask() {
  std::vector<double> point(dimensions_);
  const std::size_t turn = asked_++;
  if (turn < options_.initial || told_.empty()) {
    for (std::size_t d = 0; d < dimensions_; ++d) {
      const double strata = static_cast<double>(options_.initial);
      const double stratum = start_[d][turn % options_.initial];
      point[d] = (stratum + random_.uniform()) / strata;
    }
    return point;
  }
  const std::size_t least = dimensions_ + 1;  // fewer points span no volume
  const auto good = std::max(
      least, static_cast<std::size_t>(options_.good_share * static_cast<double>(told_.size())));
  if (random_.uniform() < options_.chance || told_.size() < good + least) {
    for (double& x : point) x = random_.uniform();
    return point;
  }
  const Widths near = widths(0, good);
  const Widths rest = widths(good, told_.size());
  double best = -std::numeric_limits<double>::infinity();
  std::vector<double> x(dimensions_);
  for (std::size_t i = 0; i < options_.candidates; ++i) {
    const std::vector<double>& centre = told_[random_.below(good)].point;
    for (std::size_t d = 0; d < dimensions_; ++d) {
      x[d] = drawn_near(centre[d], std::min(1.0, options_.widen * near[d]));
    }
    const double ratio = log_density(x, 0, good, near) - log_density(x, good, told_.size(), rest);
    if (ratio > best) {
      best = ratio;
      point = x;
    }
  }
  return point;
}

void Tpe::tell(std::vector<double> point, const Score& score) {
  const auto place =
      std::upper_bound(told_.begin(), told_.end(), score,
                       [](const Score& s, const Told& told) { return better(s, told.score); });
  told_.insert(place, {std::move(point), score});
}

}  // namespace paceline::tuner
