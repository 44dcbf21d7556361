#include "dataplane/base/numbers/distributions.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <vector>

namespace paceline {
namespace {

// Largest distance between the empirical and the given distribution function (Kolmogorov-Smirnov),
// times sqrt(n): exceeds 1.95 with probability 0.001.
template <class Cdf>
double ks_statistic(std::vector<double> sample, Cdf cdf) {
  std::sort(sample.begin(), sample.end());
  const double n = static_cast<double>(sample.size());
  double worst = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double p = cdf(sample[i]);
    worst = std::max({worst, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
  }
  return worst * std::sqrt(n);
}

constexpr int kDraws = 200'000;

TEST_CASE("exponential draws follow the exponential distribution") {
  const double mean = GENERATE(1.0, 2.5e-6, 4e9);
  Random random(21);
  std::vector<double> sample;
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = exponential(random, mean);
    REQUIRE(x >= 0.0);
    REQUIRE(std::isfinite(x));
    sum += x;
    sample.push_back(x);
  }
  CHECK(std::abs(sum / kDraws / mean - 1.0) < 4 / std::sqrt(kDraws));
  CHECK(ks_statistic(sample, [&](double x) { return 1 - std::exp(-x / mean); }) < 1.95);
}

TEST_CASE("normal draws follow the standard normal distribution") {
  Random random(22);
  std::vector<double> sample;
  double sum = 0;
  double squares = 0;
  double cubes = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = standard_normal(random);
    sum += x;
    squares += x * x;
    cubes += x * x * x;
    sample.push_back(x);
  }
  CHECK(std::abs(sum / kDraws) < 4 / std::sqrt(kDraws));
  CHECK(std::abs(squares / kDraws - 1) < 4 * std::sqrt(2.0 / kDraws));
  CHECK(std::abs(cubes / kDraws) < 4 * std::sqrt(15.0 / kDraws));
  CHECK(ks_statistic(sample, [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }) < 1.95);
}

TEST_CASE("draws are pinned") {
  Random random(1, 2);
  CHECK(exponential(random, 1.0) == 0x1.7f04c8c576611p-1);
  CHECK(exponential(random, 1000.0) == 0x1.bbb64ef62383cp+10);
  CHECK(standard_normal(random) == 0x1.303bba8b71938p-1);
  CHECK(standard_normal(random) == 0x1.251148c8f797ap-2);
}

TEST_CASE("an exponential of mean 0 is 0") {
  Random random(1);
  for (int i = 0; i < 100; ++i) CHECK(exponential(random, 0.0) == 0.0);
}

}  // namespace
}  // namespace paceline
