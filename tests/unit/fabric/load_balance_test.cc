// How a switch spreads over equal-cost links.
#include <catch2/catch.hpp>

#include "tests/unit/fabric/lab.h"

namespace paceline::fabric {
namespace {

constexpr ClosLinks kEqualLinks{rate_from_gbps(100), rate_from_gbps(100), rate_from_gbps(100),
                                picos_from_micros(1), picos_from_micros(1)};
// Four hosts on each of two leaves, four spines: links 8..11 are leaf 0's uplinks.
constexpr ClosShape kFourSpines{.leaves = 2, .spines = 4, .hosts_per_leaf = 4};

struct Spread {
  std::array<std::uint64_t, 4> packets{};
  std::uint64_t out_of_order = 0;
};

Spread spread(LoadBalance how, std::uint64_t seed, bool tables, int packets = 1'000) {
  FabricSpec spec = clos(kFourSpines, kEqualLinks);
  if (tables) spec.shape = {};
  spec.load_balance = how;
  spec.seed = seed;
  Lab lab(spec);
  for (int i = 0; i < packets; ++i) lab.send({.from = 0, .to = 4});
  REQUIRE(lab.run());
  Spread out;
  for (std::uint32_t i = 0; i < 4; ++i) {
    out.packets[i] = lab.net().egress_stats(2 * (8 + i))->packets;
  }
  for (std::size_t i = 1; i < lab.deliveries().size(); ++i) {
    out.out_of_order += lab.deliveries()[i].id < lab.deliveries()[i - 1].id ? 1 : 0;
  }
  CHECK(lab.deliveries().size() == static_cast<std::size_t>(packets));
  return out;
}

TEST_CASE("ecmp: a flow stays on one link and in order") {
  const Spread s = spread(LoadBalance::ecmp, 1, false);
  CHECK(*std::max_element(s.packets.begin(), s.packets.end()) == 1'000);
  CHECK(s.out_of_order == 0);
}

TEST_CASE("spray: the links of a group in turn, to the packet") {
  for (const bool tables : {false, true}) {
    const Spread s = spread(LoadBalance::spray, 1, tables);
    CHECK(s.packets == std::array<std::uint64_t, 4>{250, 250, 250, 250});
    CHECK(s.out_of_order == 0);  // equal links, no other traffic
  }
}

TEST_CASE("spray at random: even in the mean, and from the seed") {
  const Spread s = spread(LoadBalance::spray_random, 1, false);
  for (const std::uint64_t n : s.packets) {
    CHECK(n > 195);  // binomial(1000, 1/4): four standard deviations are 55
    CHECK(n < 305);
  }
  CHECK(s.packets != spread(LoadBalance::spray_random, 2, false).packets);
  CHECK(s.packets == spread(LoadBalance::spray_random, 1, true).packets);
}

// All hosts of one leaf send to those of the other at line rate. With hashing flows collide; with
// spraying they spread evenly.
TEST_CASE("spray carries a full leaf without a queue where flows collide") {
  const auto drained = [](LoadBalance how) {
    FabricSpec spec = clos(kFourSpines, kEqualLinks);
    spec.load_balance = how;
    Lab lab(spec);
    for (std::uint32_t h = 0; h < 4; ++h) {
      for (int i = 0; i < 500; ++i) {
        lab.send({.from = h,
                  .to = 4 + h,
                  .payload = 4096,
                  .source_port = static_cast<std::uint16_t>(50'000 + h)});
      }
    }
    REQUIRE(lab.run());
    CHECK(lab.deliveries().size() == 2'000);
    return lab.now();
  };
  const Picos ideal = serialization_time(500 * lab_wire_bytes(4096), rate_from_gbps(100)) +
                      serialization_time(3 * lab_wire_bytes(4096), rate_from_gbps(100)) +
                      picos_from_micros(4);
  // A few packets of queue where two leave a spine for one leaf at a time.
  CHECK(drained(LoadBalance::spray) <= ideal + picos_from_micros(3));
  CHECK(drained(LoadBalance::ecmp) > ideal * 3 / 2);  // with these ports at least two share a link
}

}  // namespace
}  // namespace paceline::fabric
