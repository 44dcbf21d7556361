#include "dataplane/fabric/switching/path_chooser.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "dataplane/fabric/topology/clos.h"

namespace paceline::fabric {
namespace {

// Two leaves of two hosts, four spines: hosts 0 to 3, leaves 4 and 5, spines 6 to 9.
FabricSpec two_leaves(LoadBalance load_balance, std::uint64_t seed = 1) {
  FabricSpec spec;
  spec.hosts = 4;
  spec.switches = 6;
  for (std::uint32_t h = 0; h < 4; ++h) spec.links.push_back({.a = h, .b = 4 + h / 2});
  for (std::uint32_t leaf = 4; leaf < 6; ++leaf) {
    for (std::uint32_t spine = 6; spine < 10; ++spine)
      spec.links.push_back({.a = leaf, .b = spine});
  }
  spec.load_balance = load_balance;
  spec.seed = seed;
  return spec;
}

// How often each member of the group is chosen.
std::vector<int> chosen(const FabricSpec& spec, int times, bool one_flow) {
  const Topology topology(spec);
  const NextHop hop = topology.next_hop(0, 3);
  REQUIRE(hop.count == 4);
  PathChooser chooser(spec);
  std::vector<int> out(hop.count, 0);
  for (int i = 0; i < times; ++i) {
    const auto entropy =
        static_cast<std::uint32_t>(one_flow ? 17 : mix64(static_cast<std::uint64_t>(i)));
    const std::uint32_t link = chooser.choose(topology, 0, hop, entropy);
    for (std::uint32_t m = 0; m < hop.count; ++m) {
      if (topology.member(hop, m) == link) ++out[m];
    }
  }
  CHECK(out[0] + out[1] + out[2] + out[3] == times);  // none but members
  return out;
}

TEST_CASE("paths: by hash a flow stays on one link, and flows spread") {
  const std::vector<int> one = chosen(two_leaves(LoadBalance::ecmp), 100, true);
  CHECK(*std::max_element(one.begin(), one.end()) == 100);
  const std::vector<int> many = chosen(two_leaves(LoadBalance::ecmp), 4'000, false);
  // 1,000 each; five standard deviations are 137.
  for (const int count : many) CHECK(count == Approx(1'000).margin(137));
}

TEST_CASE("paths: sprayed packets take turns, whatever their flow") {
  for (const int count : chosen(two_leaves(LoadBalance::spray), 400, true)) CHECK(count == 100);
}

TEST_CASE("paths: random spraying spreads one flow evenly, by the seed") {
  const std::uint64_t seed = GENERATE(range(1, 6));
  INFO("seed " << seed);
  const FabricSpec spec = two_leaves(LoadBalance::spray_random, seed);
  const std::vector<int> first = chosen(spec, 4'000, true);
  for (const int count : first) CHECK(count == Approx(1'000).margin(137));
  CHECK(chosen(spec, 4'000, true) == first);
}

}  // namespace
}  // namespace paceline::fabric
