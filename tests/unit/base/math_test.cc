#include "dataplane/base/numbers/math.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include "dataplane/base/numbers/random.h"

namespace paceline {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
constexpr double kLargest = std::numeric_limits<double>::max();

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// Distance from the exact value (80-bit long double carries 11 more bits) in units of the last
// place of the result.
double ulps(double got, long double exact) {
  const double near = std::abs(static_cast<double>(exact));
  const double ulp = std::max(std::nextafter(near, kInf) - near, kSmallest);
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / ulp);
}

double any_positive(Random& random) {  // every exponent, subnormals too
  return std::bit_cast<double>(random.below(0x7FF0'0000'0000'0000));
}

double in_range(Random& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

TEST_CASE("det_log is within an ulp over the whole range") {
  Random random(1);
  double worst = 0;
  for (int i = 0; i < 300'000; ++i) {
    const double x = any_positive(random);
    if (x == 0) continue;
    worst = std::max(worst, ulps(det_log(x), std::log(static_cast<long double>(x))));
  }
  for (int i = 0; i < 500'000; ++i) {  // where cancellation would show
    const double x = in_range(random, 0.5, 2.0);
    worst = std::max(worst, ulps(det_log(x), std::log(static_cast<long double>(x))));
    const double y = 1.0 + in_range(random, -1e-6, 1e-6);
    worst = std::max(worst, ulps(det_log(y), std::log(static_cast<long double>(y))));
  }
  INFO("worst error " << worst << " ulp");
  CHECK(worst < 1.0);
}

TEST_CASE("det_exp is within an ulp over the whole range") {
  Random random(2);
  double worst = 0;
  for (int i = 0; i < 300'000; ++i) {
    for (const double x : {in_range(random, -745.0, 709.7), in_range(random, -1.0, 1.0)}) {
      worst = std::max(worst, ulps(det_exp(x), std::exp(static_cast<long double>(x))));
    }
  }
  INFO("worst error " << worst << " ulp");
  CHECK(worst < 1.0);
}

TEST_CASE("det_pow is within an ulp over the whole range") {
  Random random(3);
  double worst = 0;
  for (int i = 0; i < 300'000; ++i) {
    const double base = any_positive(random);
    if (base == 0) continue;
    // Exponents that put the result anywhere between the smallest and the largest double.
    const double log_result = in_range(random, -744.0, 709.0);
    const double exponent = log_result / std::log(base);
    const long double exact =
        std::pow(static_cast<long double>(base), static_cast<long double>(exponent));
    worst = std::max(worst, ulps(det_pow(base, exponent), exact));
    const double near = in_range(random, 0.9, 1.1);
    const double far = in_range(random, -5000.0, 5000.0);
    worst = std::max(worst, ulps(det_pow(near, far), std::pow(static_cast<long double>(near),
                                                              static_cast<long double>(far))));
  }
  INFO("worst error " << worst << " ulp");
  CHECK(worst < 1.0);
}

TEST_CASE("det_log at the edges") {
  CHECK(same_bits(det_log(1.0), 0.0));
  CHECK(det_log(0.0) == -kInf);
  CHECK(det_log(-0.0) == -kInf);
  CHECK(det_log(kInf) == kInf);
  CHECK(std::isnan(det_log(-1.0)));
  CHECK(std::isnan(det_log(-kSmallest)));
  CHECK(std::isnan(det_log(-kInf)));
  CHECK(std::isnan(det_log(kNan)));
  CHECK(det_log(kSmallest) == Approx(-744.4400719213812).epsilon(1e-15));
  CHECK(det_log(kLargest) == Approx(709.782712893384).epsilon(1e-15));
}

TEST_CASE("det_exp at the edges") {
  CHECK(det_exp(0.0) == 1.0);
  CHECK(det_exp(-0.0) == 1.0);
  CHECK(det_exp(kSmallest) == 1.0);
  CHECK(det_exp(kInf) == kInf);
  CHECK(same_bits(det_exp(-kInf), 0.0));
  CHECK(std::isnan(det_exp(kNan)));
  CHECK(std::isfinite(det_exp(709.782712893383)));
  CHECK(det_exp(709.782712893385) == kInf);
  CHECK(det_exp(709.789) == kInf);
  CHECK(det_exp(710.0) == kInf);
  CHECK(det_exp(1e300) == kInf);
  CHECK(det_exp(-745.13) == kSmallest);
  CHECK(det_exp(-745.135) == 0.0);
  CHECK(same_bits(det_exp(-1e300), 0.0));
}

TEST_CASE("det_pow at the edges") {
  for (const double x : {0.0, -0.0, 1.0, -2.5, kInf, -kInf, kNan}) {
    CHECK(det_pow(x, 0.0) == 1.0);
    CHECK(det_pow(x, -0.0) == 1.0);
  }
  for (const double y : {3.5, -kInf, kInf, kNan}) CHECK(det_pow(1.0, y) == 1.0);
  CHECK(std::isnan(det_pow(kNan, 1.0)));
  CHECK(std::isnan(det_pow(2.0, kNan)));

  SECTION("zero base") {
    CHECK(same_bits(det_pow(0.0, 3.0), 0.0));
    CHECK(same_bits(det_pow(-0.0, 3.0), -0.0));
    CHECK(same_bits(det_pow(-0.0, 2.0), 0.0));
    CHECK(same_bits(det_pow(-0.0, 0.5), 0.0));
    CHECK(det_pow(0.0, -1.0) == kInf);
    CHECK(det_pow(-0.0, -3.0) == -kInf);
    CHECK(det_pow(-0.0, -2.0) == kInf);
  }
  SECTION("infinite base") {
    CHECK(det_pow(kInf, 2.0) == kInf);
    CHECK(same_bits(det_pow(kInf, -2.0), 0.0));
    CHECK(det_pow(-kInf, 3.0) == -kInf);
    CHECK(det_pow(-kInf, 2.0) == kInf);
    CHECK(det_pow(-kInf, 0.5) == kInf);
    CHECK(same_bits(det_pow(-kInf, -3.0), -0.0));
  }
  SECTION("infinite exponent") {
    CHECK(det_pow(2.0, kInf) == kInf);
    CHECK(same_bits(det_pow(2.0, -kInf), 0.0));
    CHECK(same_bits(det_pow(0.5, kInf), 0.0));
    CHECK(det_pow(0.5, -kInf) == kInf);
    CHECK(det_pow(-1.0, kInf) == 1.0);
    CHECK(det_pow(0.0, -kInf) == kInf);
  }
  SECTION("negative base") {
    CHECK(det_pow(-2.0, 3.0) == -8.0);
    CHECK(det_pow(-2.0, 4.0) == 16.0);
    CHECK(det_pow(-1.0, 1e300) == 1.0);
    CHECK(det_pow(-1.0, kLargest) == 1.0);
    CHECK(det_pow(-1.0, 4503599627370497.0) == -1.0);
    CHECK(det_pow(-2.0, -1e300) == 0.0);
    CHECK(std::isnan(det_pow(-2.0, 0.5)));
    CHECK(std::isnan(det_pow(-1.0, 0.5)));
  }
  SECTION("overflow and underflow") {
    CHECK(det_pow(2.0, 1023.0) == 0x1.0p1023);
    CHECK(det_pow(2.0, 1024.0) == kInf);
    CHECK(det_pow(-2.0, 1025.0) == -kInf);
    CHECK(det_pow(2.0, -1074.0) == kSmallest);
    CHECK(det_pow(2.0, -1076.0) == 0.0);
    CHECK(same_bits(det_pow(-2.0, -1077.0), -0.0));
    CHECK(det_pow(1.0 + 0x1.0p-52, 1e300) == kInf);
    CHECK(same_bits(det_pow(1.0 - 0x1.0p-53, 1e300), 0.0));
    CHECK(det_pow(2.0, kSmallest) == 1.0);
  }
}

TEST_CASE("small whole powers are exact") {
  for (int base = 1; base <= 20; ++base) {
    double expected = 1;
    for (int exponent = 0; exponent <= 12; ++exponent) {
      CHECK(det_pow(base, exponent) == expected);
      expected *= base;
    }
  }
}

TEST_CASE("every build computes the same bits") {
  // The sums are pinned: the same value must come from GCC and Clang, debug and release.
  Random random(4);
  std::uint64_t log_sum = 0;
  std::uint64_t exp_sum = 0;
  std::uint64_t pow_sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = any_positive(random);
    log_sum = mix64(log_sum ^ std::bit_cast<std::uint64_t>(det_log(x)));
    const double y = in_range(random, -745.0, 710.0);
    exp_sum = mix64(exp_sum ^ std::bit_cast<std::uint64_t>(det_exp(y)));
    const double base = in_range(random, 0.0, 3.0);
    pow_sum = mix64(pow_sum ^ std::bit_cast<std::uint64_t>(det_pow(base, y)));
  }
  CHECK(log_sum == 0x6d7455bf19067bcaU);
  CHECK(exp_sum == 0xd1208d13ef6a4e48U);
  CHECK(pow_sum == 0xc2a90256dc983f22U);
}

}  // namespace
}  // namespace paceline
