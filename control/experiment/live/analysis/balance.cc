#include "control/experiment/live/analysis/balance.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/hypergeometric.hpp>
#include <cmath>
#include <stdexcept>

namespace paceline::experiment::live {

namespace {

constexpr double kFew = 5;  // expected counts below which chi-square is not to be trusted

// Two-sided: all outcomes that are no more likely than the one seen.
template <class Distribution>
double exact_two_sided(const Distribution& law, std::uint64_t from, std::uint64_t to,
                       std::uint64_t seen) {
  const double limit = boost::math::pdf(law, static_cast<double>(seen)) * (1 + 1e-9);
  double p = 0;
  for (std::uint64_t k = from; k <= to; ++k) {
    const double each = boost::math::pdf(law, static_cast<double>(k));
    if (each <= limit) p += each;
  }
  return std::min(1.0, p);
}

}  // namespace

double chi_square_survival(double statistic, double degrees_of_freedom) {
  return boost::math::cdf(boost::math::complement(boost::math::chi_squared(degrees_of_freedom),
                                                  std::max(0.0, statistic)));
}

double share_test(std::array<std::uint64_t, 2> observed, std::array<double, 2> expected) {
  const std::uint64_t total = observed[0] + observed[1];
  const double weight = expected[0] + expected[1];
  if (!(expected[0] > 0 && expected[1] > 0)) {
    throw std::invalid_argument("a share test needs two positive expectations");
  }
  if (total == 0) return kUndefined;
  const double n = static_cast<double>(total);
  const double first = n * expected[0] / weight;
  const double second = n - first;
  if (first < kFew || second < kFew) {
    const boost::math::binomial law(n, expected[0] / weight);
    return exact_two_sided(law, 0, total, observed[0]);
  }
  const double off = static_cast<double>(observed[0]) - first;
  return chi_square_survival(off * off / first + off * off / second, 1);
}

double loss_test(std::array<std::uint64_t, 2> lost, std::array<std::uint64_t, 2> planned) {
  if (lost[0] > planned[0] || lost[1] > planned[1]) {
    throw std::invalid_argument("more lost than planned");
  }
  const std::uint64_t all_lost = lost[0] + lost[1];
  const std::uint64_t all = planned[0] + planned[1];
  if (all_lost == 0 || all_lost == all || planned[0] == 0 || planned[1] == 0) return kUndefined;
  const double n = static_cast<double>(all);
  const double expected = static_cast<double>(all_lost) * static_cast<double>(planned[0]) / n;
  const double least =
      std::min({expected, static_cast<double>(all_lost) - expected,
                static_cast<double>(planned[0]) - expected,
                static_cast<double>(planned[1]) - (static_cast<double>(all_lost) - expected)});
  if (least < kFew) {
    const std::uint64_t from = all_lost > planned[1] ? all_lost - planned[1] : 0;
    const std::uint64_t to = std::min(all_lost, planned[0]);
    const boost::math::hypergeometric law(static_cast<unsigned>(planned[0]),
                                          static_cast<unsigned>(all_lost),
                                          static_cast<unsigned>(all));
    return exact_two_sided(law, from, to, lost[0]);
  }
  const double off = static_cast<double>(lost[0]) - expected;
  const double l = static_cast<double>(all_lost);
  const double p0 = static_cast<double>(planned[0]);
  const double p1 = static_cast<double>(planned[1]);
  return chi_square_survival(off * off * n * n * n / (l * (n - l) * p0 * p1), 1);
}

double pairs_test(std::span<const double> differences) {
  double sum = 0;
  double squares = 0;
  for (const double d : differences) {
    sum += d;
    squares += d * d;
  }
  if (differences.size() < 2) return kUndefined;
  if (squares == 0) return 1;
  return chi_square_survival(sum * sum / squares, 1);
}

}  // namespace paceline::experiment::live
