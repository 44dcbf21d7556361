#include "dataplane/base/numbers/random.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace paceline {
namespace {

TEST_CASE("splitmix64 gives the published sequence") {
  // Output of the authors' reference program for seed 1234567.
  std::uint64_t state = 1234567;
  CHECK(splitmix64(state) == 6457827717110365317U);
  CHECK(splitmix64(state) == 3203168211198807973U);
  CHECK(splitmix64(state) == 9817491932198370423U);
  CHECK(splitmix64(state) == 4593380528125082431U);
  CHECK(splitmix64(state) == 16408922859458223821U);
}

TEST_CASE("xoshiro256++ gives the published sequence") {
  // Output of the authors' reference program for the state 1, 2, 3, 4.
  Random random = Random::from_state({1, 2, 3, 4});
  const std::array<std::uint64_t, 6> expected = {
      41943041U,           58720359U, 3588806011781223U, 3591011842654386U, 9228616714210784205U,
      9973669472204895162U};
  for (const std::uint64_t value : expected) CHECK(random.next() == value);
}

TEST_CASE("the streams of a seed are pinned") {
  // Published results depend on these values: a change here is a change of every result.
  const auto first = [](std::uint64_t seed, std::uint64_t stream) {
    return Random(seed, stream).next();
  };
  CHECK(first(0, 0) == 9579327875526494010U);
  CHECK(first(1, 0) == 8089978747140965633U);
  CHECK(first(0, 1) == 16869245807552443824U);
  CHECK(first(42, 7) == 4317676478037699927U);
  Random random(42, 7);
  for (int i = 0; i < 999; ++i) random.next();
  CHECK(random.next() == 14246896636124230322U);
}

TEST_CASE("neighbouring seeds and streams share nothing") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    for (std::uint64_t stream = 0; stream < 32; ++stream) {
      Random random(seed, stream);
      for (int i = 0; i < 16; ++i) seen.insert(random.next());
    }
  }
  CHECK(seen.size() == 32U * 32U * 16U);

  // Draws of adjacent streams are uncorrelated: 100,000 pairs, standard error 1/sqrt(100,000).
  Random a(5, 1);
  Random b(5, 2);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) sum += (a.uniform() - 0.5) * (b.uniform() - 0.5) * 12;
  CHECK(std::abs(sum / 100'000) < 4 / std::sqrt(100'000.0));
}

TEST_CASE("uniform stays in [0, 1) with the moments of a uniform variate") {
  Random random(7);
  constexpr int kDraws = 1'000'000;
  double sum = 0;
  double squares = 0;
  std::array<int, 64> cells{};
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform();
    REQUIRE(u >= 0.0);
    REQUIRE(u < 1.0);
    sum += u;
    squares += u * u;
    ++cells[static_cast<std::size_t>(u * 64)];
  }
  // Four standard errors: sd of u is 1/sqrt(12), of u^2 sqrt(4/45).
  CHECK(std::abs(sum / kDraws - 0.5) < 4 * std::sqrt(1.0 / 12 / kDraws));
  CHECK(std::abs(squares / kDraws - 1.0 / 3) < 4 * std::sqrt(4.0 / 45 / kDraws));
  double chi_square = 0;
  for (const int count : cells) chi_square += std::pow(count - kDraws / 64.0, 2) / (kDraws / 64.0);
  CHECK(chi_square < 103.4);  // 63 degrees of freedom, p = 0.001
}

TEST_CASE("uniform is the upper 53 bits of a draw") {
  Random random(6);
  Random twin = random;
  for (int i = 0; i < 100; ++i) {
    CHECK(random.uniform() == static_cast<double>(twin.next() >> 11) / 0x1.0p53);
  }
}

TEST_CASE("below stays in range and favours no value") {
  const std::uint64_t n = GENERATE(1U, 2U, 3U, 7U, 10U, 100U);
  Random random(11, n);
  std::vector<int> counts(n);
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t value = random.below(n);
    REQUIRE(value < n);
    ++counts[value];
  }
  const double expected = kDraws / static_cast<double>(n);
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - expected, 2) / expected;
  const double degrees = static_cast<double>(n - 1);
  CHECK(chi_square <= degrees + 4 * std::sqrt(2 * degrees) + 4);
}

TEST_CASE("below has no bias where a plain multiplication or remainder would") {
  // For n = 3 * 2^62, taking next() mod n, or the upper word of next() * n without rejection, makes
  // one third of the values (value mod 3 == 0, or value below 2^62) twice as likely.
  constexpr std::uint64_t n = std::uint64_t{3} << 62;
  Random random(13);
  constexpr int kDraws = 300'000;
  std::array<int, 3> by_third{};
  std::array<int, 3> by_remainder{};
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t value = random.below(n);
    ++by_third[value >> 62];
    ++by_remainder[value % 3];
  }
  const double tolerance = 4 * std::sqrt(kDraws * (1.0 / 3) * (2.0 / 3));
  for (const int count : by_third) CHECK(std::abs(count - kDraws / 3.0) < tolerance);
  for (const int count : by_remainder) CHECK(std::abs(count - kDraws / 3.0) < tolerance);
}

TEST_CASE("a generator continues from its saved state") {
  Random random(3, 9);
  for (int i = 0; i < 10; ++i) random.next();
  Random copy = Random::from_state(random.state());
  CHECK(copy == random);
  for (int i = 0; i < 10; ++i) CHECK(copy.next() == random.next());
}

}  // namespace
}  // namespace paceline
