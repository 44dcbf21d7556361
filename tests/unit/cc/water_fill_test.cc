// Max-min shares against what defines them, and against a fill one unit at a time.
#include "cc/water_fill.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "dataplane/base/random.h"

namespace paceline::cc {
namespace {

struct Claim {
  std::uint32_t limit = 0;
  std::uint8_t weight = 1;
};

// Shares by slot.
std::vector<std::uint32_t> shares_of(const std::vector<Claim>& claims, std::uint64_t capacity) {
  WaterFill fill;
  fill.reserve(claims.size());
  fill.load(claims);
  fill.fill(capacity);
  REQUIRE(fill.size() == claims.size());
  std::vector<std::uint32_t> shares(claims.size(), 0xFFFF'FFFF);
  for (std::size_t place = 0; place < fill.size(); ++place) {
    const std::size_t slot = fill.slot(place);
    if (place > 0) {  // by limit per weight, then by slot
      const std::size_t before = fill.slot(place - 1);
      const std::uint64_t left = std::uint64_t{claims[before].limit} * claims[slot].weight;
      const std::uint64_t right = std::uint64_t{claims[slot].limit} * claims[before].weight;
      REQUIRE((left < right || (left == right && before < slot)));
    }
    shares[slot] = fill.share(place);
  }
  return shares;
}

// What max-min means in whole units: all of the capacity is used or everybody has the limit, and
// whoever has less than the limit has at most a unit less per weight than anybody else.
void check_max_min(const std::vector<Claim>& claims, std::uint64_t capacity) {
  const std::vector<std::uint32_t> shares = shares_of(claims, capacity);
  std::uint64_t limits = 0;
  std::uint64_t sum = 0;
  double level = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    limits += claims[i].limit;
    sum += shares[i];
    REQUIRE(shares[i] <= claims[i].limit);
    level = std::max(level, static_cast<double>(shares[i]) / claims[i].weight);
  }
  REQUIRE(sum == std::min(limits, capacity));
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (shares[i] == claims[i].limit) continue;
    // One unit of its own missing, one too many with whoever has most: that may have weight 1.
    REQUIRE((shares[i] + 1.0) / claims[i].weight >= level - 1.0);
  }
}

TEST_CASE("water fill: by hand") {
  CHECK(shares_of({{10}, {100}, {100}}, 90) == std::vector<std::uint32_t>{10, 40, 40});
  // What is left over goes to the last ones.
  CHECK(shares_of({{100}, {100}, {100}}, 11) == std::vector<std::uint32_t>{3, 4, 4});
  CHECK(shares_of({{5}, {7}}, 100) == std::vector<std::uint32_t>{5, 7});
  CHECK(shares_of({{5}, {7}}, 0) == std::vector<std::uint32_t>{0, 0});
  CHECK(shares_of({}, 5).empty());
  // A limit that is the level exactly is granted.
  CHECK(shares_of({{30}, {100}, {100}}, 90) == std::vector<std::uint32_t>{30, 30, 30});
  // Weights divide what the limits leave.
  CHECK(shares_of({{100, 1}, {100, 3}, {8, 16}}, 28) == std::vector<std::uint32_t>{5, 15, 8});
  // 1/255 and 1/254 of a limit are told apart.
  CHECK(shares_of({{1, 254}, {1, 255}}, 1) == std::vector<std::uint32_t>{1, 0});
}

TEST_CASE("water fill: max-min whatever the limits, weights and sizes") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    Random random(seed);
    for (int round = 0; round < 200; ++round) {
      // Both sorts: few slots, and many.
      const std::size_t size = 1 + random.below(round % 8 == 0 ? 3000 : 40);
      const bool mixed = random.below(3) == 0;
      const auto weight = static_cast<std::uint8_t>(1 + random.below(255));
      const unsigned bits = 1 + static_cast<unsigned>(random.below(32));
      std::vector<Claim> claims(size);
      std::uint64_t limits = 0;
      for (Claim& claim : claims) {
        claim.limit = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << bits));
        claim.weight = mixed ? static_cast<std::uint8_t>(1 + random.below(255)) : weight;
        limits += claim.limit;
      }
      CAPTURE(round, size, mixed, bits);
      check_max_min(claims, random.below(limits + limits / 4 + 2));
    }
  }
}

}  // namespace
}  // namespace paceline::cc
