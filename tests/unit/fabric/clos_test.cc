#include "dataplane/fabric/topology/clos.h"

#include <catch2/catch.hpp>
#include <set>

#include "dataplane/base/random.h"
#include "dataplane/fabric/topology/topology.h"

namespace paceline::fabric {
namespace {

constexpr ClosLinks kLinks{rate_from_gbps(100), rate_from_gbps(400), rate_from_gbps(200),
                           picos_from_micros(1), picos_from_micros(2)};

ClosShape random_shape(Random& random) {
  const auto upto = [&random](std::uint64_t n) {
    return static_cast<std::uint32_t>(1 + random.below(n));
  };
  ClosShape shape;
  shape.hosts_per_leaf = upto(5);
  shape.links_per_pair = upto(3);
  switch (random.below(4)) {
    case 0:  // dumbbell
      shape.leaves = 2;
      return shape;
    case 1:  // leaf-spine
      shape.leaves = upto(6);
      shape.spines = upto(5);
      return shape;
    default:
      shape.pods = 1 + upto(4);
      shape.leaves = upto(4);
      shape.spines = upto(4);
      shape.cores = shape.spines * upto(4);
      return shape;
  }
}

TEST_CASE("regular fabrics: computed routes are those that a search finds") {
  Random random(7);
  int shapes = 0;
  for (int i = 0; i < 60; ++i) {
    const ClosShape shape = random_shape(random);
    if (shape.hosts() < 2) continue;
    ++shapes;
    CAPTURE(shape.pods, shape.leaves, shape.spines, shape.cores, shape.hosts_per_leaf,
            shape.links_per_pair);
    const FabricSpec spec = clos(shape, kLinks);
    REQUIRE(check(spec).empty());
    FabricSpec unknown = spec;
    unknown.shape = {};
    const Topology computed(spec);
    const Topology searched(unknown);
    std::uint64_t wrong = 0;
    for (std::uint32_t s = 0; s < spec.switches; ++s) {
      for (std::uint32_t h = 0; h < spec.hosts; ++h) {
        // A core has no use for hosts of its own pod's kind; every pair is compared all the same.
        for (std::uint32_t entropy = 0; entropy < 8; ++entropy) {
          wrong += computed.next_link(s, h, entropy) != searched.next_link(s, h, entropy) ? 1 : 0;
        }
        const NextHop a = computed.next_hop(s, h);
        const NextHop b = searched.next_hop(s, h);
        REQUIRE(a.count == b.count);
        for (std::uint32_t m = 0; a.count > 1 && m < a.count; ++m) {
          wrong += computed.member(a, m) != searched.member(b, m) ? 1 : 0;
        }
      }
    }
    CHECK(wrong == 0);
  }
  CHECK(shapes > 40);
}

TEST_CASE("the classical fat tree of k-port switches") {
  // k = 8: 128 hosts, 32 leaves, 32 spines, 16 cores, every switch with 8 ports.
  const ClosShape shape{.pods = 8, .leaves = 4, .spines = 4, .cores = 16, .hosts_per_leaf = 4};
  const FabricSpec spec = clos(shape, kLinks);
  CHECK(spec.hosts == 128);
  CHECK(spec.switches == 80);
  CHECK(spec.links.size() == 3 * 128);
  std::vector<std::uint32_t> ports(spec.switches);
  for (const LinkSpec& link : spec.links) {
    ++ports[link.b - spec.hosts];
    if (link.a >= spec.hosts) ++ports[link.a - spec.hosts];
  }
  for (const std::uint32_t count : ports) CHECK(count == 8);
  const Topology topology(spec);
  CHECK(topology.path(0, 1).size() == 2);
  CHECK(topology.path(0, 4).size() == 4);
  CHECK(topology.path(0, 127).size() == 6);
  // Every core lies on some path between two pods.
  std::set<std::vector<std::uint32_t>> paths;
  for (std::uint32_t entropy = 0; entropy < 2'000; ++entropy) {
    paths.insert(topology.path(0, 127, entropy));
  }
  CHECK(paths.size() == 16);
}

TEST_CASE("links of a regular fabric have the rates of their tier") {
  const FabricSpec tree =
      clos({.pods = 2, .leaves = 2, .spines = 2, .cores = 2, .hosts_per_leaf = 3}, kLinks);
  CHECK(tree.links[0].rate == kLinks.host_rate);
  CHECK(tree.links[0].delay == kLinks.host_delay);
  CHECK(tree.links[12].rate == kLinks.uplink_rate);
  CHECK(tree.links[12].delay == kLinks.uplink_delay);
  CHECK(tree.links.back().rate == kLinks.core_rate);
  const FabricSpec trunk = clos({.leaves = 2, .hosts_per_leaf = 2, .links_per_pair = 2}, kLinks);
  CHECK(trunk.links.size() == 6);
  CHECK(trunk.links.back().rate == kLinks.uplink_rate);
  FabricSpec wrong = tree;
  wrong.links.pop_back();
  CHECK_FALSE(check(wrong).empty());
}

TEST_CASE("a quotient without a division") {
  Random random(3);
  for (int i = 0; i < 200'000; ++i) {
    const auto d = static_cast<std::uint32_t>(1 + random.below(4096));
    const auto n = static_cast<std::uint32_t>(random.below(1 << 18));
    if (Divider(d)(n) != n / d) FAIL(n << " / " << d);
  }
}

}  // namespace
}  // namespace paceline::fabric
