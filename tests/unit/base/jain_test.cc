#include "dataplane/base/numbers/jain.h"

#include <array>
#include <catch2/catch.hpp>
#include <vector>

namespace paceline {
namespace {

TEST_CASE("equal shares are fair whatever their unit") {
  CHECK(jain_index(std::vector<double>(7, 3.5)) == Approx(1.0));
  CHECK(jain_index(std::vector<double>(32, 3.125e9)) == Approx(1.0));
  CHECK(jain_index(std::array{5.0}) == Approx(1.0));
}

TEST_CASE("k of n sharing everything gives k/n") {
  for (int k = 1; k <= 10; ++k) {
    std::vector<double> shares(10, 0.0);
    for (int i = 0; i < k; ++i) shares[static_cast<std::size_t>(i)] = 2.0;
    CHECK(jain_index(shares) == Approx(k / 10.0));
  }
}

TEST_CASE("a worked value") { CHECK(jain_index(std::array{1.0, 2.0, 3.0}) == Approx(36.0 / 42.0)); }

TEST_CASE("nobody, or nothing for anybody, counts as fair") {
  CHECK(jain_index({}) == 1.0);
  CHECK(jain_index(std::array{0.0, 0.0}) == 1.0);
}

}  // namespace
}  // namespace paceline
