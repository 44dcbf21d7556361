#include "dataplane/fabric/topology/clos.h"

#include <catch2/catch.hpp>
#include <set>

#include "dataplane/base/numbers/random.h"
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
  if (random.below(6) == 0) {  // dumbbell
    shape.leaves = 2;
    return shape;
  }
  if (random.below(2) == 0) shape.planes = upto(3);
  switch (random.below(5)) {
    case 0:  // leaf-spine
      shape.leaves = upto(6);
      shape.spines = upto(5);
      return shape;
    case 1:  // rails, each of leaves and spines or of one leaf alone
      shape.pods = upto(5);
      shape.spines = static_cast<std::uint32_t>(random.below(4));
      shape.leaves = shape.spines == 0 ? 1 : upto(4);
      return shape;
    default:
      shape.pods = 1 + upto(4);
      shape.leaves = upto(4);
      shape.spines = upto(4);
      shape.cores = shape.spines * upto(4);
      return shape;
  }
}

// Whether a packet for a host that this switch cannot reach ends up without a next hop, sent only
// over links of the switch where it is.
bool ends_nowhere(const FabricSpec& spec, const Topology& topology, std::uint32_t at,
                  std::uint32_t host) {
  for (int hops = 0; hops < 8; ++hops) {
    const NextHop hop = topology.next_hop(at, host);
    if (hop.count == 0) return true;
    const std::uint32_t link = topology.member(hop, hop.count - 1);
    const LinkSpec& of = spec.links[link / 2];
    if ((link % 2 == 0 ? of.a : of.b) != spec.hosts + at) return false;
    at = topology.far_switch(link);
    if (at == Topology::kNoLink) return false;
  }
  return false;
}

TEST_CASE("regular fabrics: computed routes are those that a search finds") {
  constexpr std::uint64_t kSeed = 7;
  CAPTURE(kSeed);
  Random random(kSeed);
  int shapes = 0;
  std::uint64_t cut_off = 0;
  for (int i = 0; i < 120; ++i) {
    const ClosShape shape = random_shape(random);
    if (shape.hosts() < 2) continue;
    ++shapes;
    CAPTURE(shape.pods, shape.leaves, shape.spines, shape.cores, shape.hosts_per_leaf,
            shape.links_per_pair, shape.planes);
    const FabricSpec spec = clos(shape, kLinks);
    REQUIRE(check_buildable(spec).empty());
    REQUIRE(check(spec).empty() == (shape.planes == 1 && (shape.pods == 1 || shape.cores != 0)));
    FabricSpec unknown = spec;
    unknown.shape = {};
    const Topology computed(spec);
    const Topology searched(unknown);
    std::uint64_t wrong = 0;
    for (std::uint32_t s = 0; s < spec.switches; ++s) {
      for (std::uint32_t h = 0; h < spec.hosts; ++h) {
        if (searched.next_hop(s, h).count == 0) {
          ++cut_off;
          wrong += ends_nowhere(spec, computed, s, h) ? 0 : 1;
          continue;
        }
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
    const std::vector<std::uint32_t> island = islands(spec);
    for (std::uint32_t a = 0; a < spec.hosts; ++a) {
      for (std::uint32_t b = 0; b < spec.hosts; ++b) {
        if (a != b && computed.reachable(a, b) != (island[a] == island[b])) ++wrong;
      }
    }
    CHECK(wrong == 0);
  }
  CHECK(shapes > 80);
  CHECK(cut_off > 10'000);
}

TEST_CASE("planes and rails: nodes and links in closed form") {
  // Eight rails of 4 leaves and 2 spines under 6 cores, in two planes; 3 parallel links.
  const ClosShape rails{.pods = 8,
                        .leaves = 4,
                        .spines = 2,
                        .cores = 6,
                        .hosts_per_leaf = 5,
                        .links_per_pair = 3,
                        .planes = 2};
  const FabricSpec spec = clos(rails, kLinks);
  CHECK(spec.hosts == 2 * 8 * 4 * 5);
  CHECK(spec.switches == 2 * (8 * (4 + 2) + 6));
  CHECK(spec.links.size() == spec.hosts + 2 * 8 * (4 * 2 * 3 + 2 * 3));
  std::vector<std::uint32_t> ports(spec.switches);
  for (const LinkSpec& link : spec.links) {
    ++ports[link.b - spec.hosts];
    if (link.a >= spec.hosts) ++ports[link.a - spec.hosts];
  }
  for (std::uint32_t s = 0; s < spec.switches; ++s) {
    CAPTURE(s);
    // A leaf: hosts and uplinks; a spine: its leaves and its share of the cores; a core: its spine
    // of every pod.
    CHECK(ports[s] == (s < 64 ? 5 + 2 * 3 : s < 96 ? 4 * 3 + 3 : 8));
  }
  // The same place in the other plane is not a neighbour; all of this plane is.
  const Topology topology(spec);
  CHECK(topology.reachable(0, 159));
  CHECK_FALSE(topology.reachable(0, 160));
  CHECK(topology.path(160, 319).size() == 6);

  // Rails without cores: no way from one to the next.
  const Topology only(clos({.pods = 3, .leaves = 2, .spines = 2, .hosts_per_leaf = 2}, kLinks));
  CHECK(only.reachable(0, 3));
  CHECK_FALSE(only.reachable(0, 4));
  // And with one leaf a rail, two in all: not a dumbbell.
  const Topology two(clos({.pods = 2, .leaves = 1, .hosts_per_leaf = 2}, kLinks));
  CHECK(two.reachable(2, 3));
  CHECK_FALSE(two.reachable(1, 2));
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
