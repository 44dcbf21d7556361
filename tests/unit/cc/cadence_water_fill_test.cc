// Max-min shares against what defines them, and against a fill one unit at a time.
#include "cc/cadence/water_fill.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::cc {
namespace {

struct Claim {
  std::uint32_t limit = 0;
  std::uint8_t weight = 1;
};

// The order, by definition: limits per weight compared as fractions, then slots.
std::vector<std::uint32_t> ordered(const std::vector<Claim>& claims) {
  std::vector<std::uint32_t> slots(claims.size());
  std::iota(slots.begin(), slots.end(), 0U);
  std::stable_sort(slots.begin(), slots.end(), [&claims](std::uint32_t a, std::uint32_t b) {
    return std::uint64_t{claims[a].limit} * claims[b].weight <
           std::uint64_t{claims[b].limit} * claims[a].weight;
  });
  return slots;
}

// The shares, by definition: in the order, each has its limit as long as all that follow could have
// as much per weight; the others divide what is left, in whole units.
std::vector<std::uint32_t> plain_shares(const std::vector<Claim>& claims, std::uint64_t capacity) {
  std::uint64_t weights = 0;
  for (const Claim& claim : claims) weights += claim.weight;
  std::vector<std::uint32_t> shares(claims.size());
  const std::vector<std::uint32_t> slots = ordered(claims);
  std::size_t place = 0;
  for (; place < slots.size(); ++place) {
    const Claim& claim = claims[slots[place]];
    if (claim.limit * weights > capacity * claim.weight) break;
    shares[slots[place]] = claim.limit;
    capacity -= claim.limit;
    weights -= claim.weight;
  }
  for (std::size_t i = place; i < slots.size(); ++i) {
    shares[slots[i]] = static_cast<std::uint32_t>(capacity * claims[slots[i]].weight / weights);
  }
  return shares;
}

// Shares by slot, whatever order the parties come in.
std::vector<std::uint32_t> shares_of(const std::vector<Claim>& claims, std::uint64_t capacity) {
  std::vector<cadence::Party> parties;
  for (std::uint32_t i = 0; i < claims.size(); ++i) {
    parties.push_back({.id = i, .limit = claims[i].limit, .weight = claims[i].weight});
  }
  std::rotate(parties.begin(), parties.begin() + static_cast<std::ptrdiff_t>(claims.size() / 3),
              parties.end());
  const cadence::WaterLevel level = cadence::water_fill(parties, capacity);
  const std::vector<std::uint32_t> order = ordered(claims);
  std::vector<std::uint32_t> shares(claims.size());
  for (std::size_t i = 0; i < parties.size(); ++i) {
    REQUIRE(parties[i].id == order[i]);
    REQUIRE((i >= level.bound || parties[i].share == parties[i].limit));
    shares[parties[i].id] = parties[i].share;
  }
  REQUIRE(shares == plain_shares(claims, capacity));
  return shares;
}

// What max-min means in whole units: all of the capacity is used, but for less than a unit for each
// that is below its limit, and these have alike: at most a unit less per weight than anybody else,
// and where weights are equal, the same.
void check_max_min(const std::vector<Claim>& claims, std::uint64_t capacity) {
  const std::vector<std::uint32_t> shares = shares_of(claims, capacity);
  std::uint64_t limits = 0;
  std::uint64_t sum = 0;
  std::uint64_t bound = 0;
  double level = 0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    limits += claims[i].limit;
    sum += shares[i];
    bound += shares[i] < claims[i].limit ? 1 : 0;
    REQUIRE(shares[i] <= claims[i].limit);
    level = std::max(level, static_cast<double>(shares[i]) / claims[i].weight);
  }
  REQUIRE(sum <= capacity);
  REQUIRE(sum + bound >= std::min(limits, capacity) + (bound > 0 ? 1 : 0));
  const bool mixed = std::any_of(claims.begin(), claims.end(), [&claims](const Claim& claim) {
    return claim.weight != claims.front().weight;
  });
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (shares[i] == claims[i].limit) continue;
    const double own = static_cast<double>(shares[i] + (mixed ? 1 : 0)) / claims[i].weight;
    REQUIRE(own >= level - (mixed ? 1.0 : 0.0));
  }
}

TEST_CASE("water fill: by hand") {
  CHECK(shares_of({{10}, {100}, {100}}, 90) == std::vector<std::uint32_t>{10, 40, 40});
  // What does not divide stays: equals are equal.
  CHECK(shares_of({{100}, {100}, {100}}, 11) == std::vector<std::uint32_t>{3, 3, 3});
  CHECK(shares_of({{5}, {7}}, 100) == std::vector<std::uint32_t>{5, 7});
  CHECK(shares_of({{5}, {7}}, 0) == std::vector<std::uint32_t>{0, 0});
  CHECK(shares_of({}, 5).empty());
  // A limit that is the level exactly is granted.
  CHECK(shares_of({{30}, {100}, {100}}, 90) == std::vector<std::uint32_t>{30, 30, 30});
  // Weights divide what the limits leave.
  CHECK(shares_of({{100, 1}, {100, 3}, {8, 16}}, 28) == std::vector<std::uint32_t>{5, 15, 8});
  // 1/255 and 1/254 of a limit are told apart: in the order, which shares_of compares.
  CHECK(shares_of({{1, 254}, {1, 255}}, 1) == std::vector<std::uint32_t>{0, 0});
}

TEST_CASE("water fill: max-min whatever the limits, weights and sizes") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    Random random(seed);
    for (int round = 0; round < 200; ++round) {
      const std::size_t size = 1 + random.below(round % 8 == 0 ? 3000 : 40);
      const bool mixed = random.below(3) == 0;
      const auto weight = static_cast<std::uint8_t>(1 + random.below(255));
      const unsigned bits = 1 + static_cast<unsigned>(random.below(32));
      const bool spread = random.below(2) == 0;
      std::vector<Claim> claims(size);
      std::uint64_t limits = 0;
      for (Claim& claim : claims) {
        // Uniform, or of all orders of magnitude; and where there are few values, many alike.
        const unsigned size_bits = spread ? 1 + static_cast<unsigned>(random.below(bits)) : bits;
        claim.limit = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << size_bits));
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
