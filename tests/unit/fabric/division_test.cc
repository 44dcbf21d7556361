#include "dataplane/fabric/topology/division.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <vector>

#include "dataplane/fabric/topology/topology.h"

namespace paceline::fabric::division_test {
namespace {

const Rate kRate = rate_from_gbps(100);
const Picos kDelay = picos_from_micros(1);

// Every host is with its switch, every part has hosts, and the lookahead is the shortest of the
// links that cross.
void check_division(const FabricSpec& spec, const Division& division) {
  std::set<std::uint32_t> with_hosts;
  Picos shortest = kNever;
  for (std::uint32_t link = 0; link < 2 * spec.links.size(); ++link) {
    const LinkSpec& of = spec.links[link / 2];
    if (of.a < spec.hosts || of.b < spec.hosts) {
      CHECK(!division.crosses(spec, link));
    } else if (division.crosses(spec, link)) {
      shortest = earlier(shortest, of.delay);
    }
  }
  for (std::uint32_t host = 0; host < spec.hosts; ++host) {
    with_hosts.insert(division.part_of_node[host]);
  }
  CHECK(with_hosts.size() == division.parts);
  CHECK(*with_hosts.rbegin() == division.parts - 1);
  CHECK(division.lookahead == shortest);
}

TEST_CASE("division: the pods of a fat tree stay whole", "[fabric]") {
  const ClosShape shape{4, 2, 2, 4, 2, 1};
  const FabricSpec spec = clos(shape, {kRate, kRate, kRate, kDelay, kDelay});
  for (const std::uint32_t parts : {2U, 4U}) {
    const Division division = divide(spec, parts);
    REQUIRE(division.parts == parts);
    check_division(spec, division);
    for (std::uint32_t leaf = 0; leaf < shape.all_leaves(); ++leaf) {
      const std::uint32_t pod = leaf / shape.leaves;
      const std::uint32_t part = pod * parts / shape.pods;
      CHECK(division.part_of_node[spec.hosts + leaf] == part);
      CHECK(division.part_of_node[spec.hosts + shape.all_leaves() + leaf] == part);  // its spine
    }
    std::vector<std::uint32_t> cores(parts);
    for (std::uint32_t core = 0; core < shape.cores; ++core) {
      ++cores[division.part_of_node[spec.hosts + 16 + core]];
    }
    for (const std::uint32_t count : cores) CHECK(count == shape.cores / parts);
  }
}

TEST_CASE("division: no more parts than switches with hosts, whatever their number", "[fabric]") {
  for (std::uint32_t leaves = 1; leaves <= 9; ++leaves) {
    const FabricSpec spec = clos({.leaves = leaves, .spines = 3, .hosts_per_leaf = 2},
                                 {kRate, kRate, kRate, kDelay, picos_from_micros(2)});
    for (std::uint32_t parts = 1; parts <= 12; ++parts) {
      CAPTURE(leaves, parts);
      const Division division = divide(spec, parts);
      CHECK(division.parts == std::min(parts, leaves));
      if (division.parts > 1) check_division(spec, division);
    }
  }
}

TEST_CASE("division: very unlike switches leave no part empty", "[fabric]") {
  // 20 hosts on the first switch, one each on the others, in a row.
  FabricSpec spec;
  spec.hosts = 23;
  spec.switches = 4;
  for (std::uint32_t h = 0; h < 23; ++h) {
    spec.links.push_back({.a = h, .b = 23 + (h < 20 ? 0 : h - 19), .rate = kRate, .delay = kDelay});
  }
  for (std::uint32_t s = 0; s < 3; ++s) {
    spec.links.push_back({.a = 23 + s, .b = 24 + s, .rate = kRate, .delay = kDelay * (s + 1)});
  }
  for (const std::uint32_t parts : {2U, 3U, 4U}) {
    const Division division = divide(spec, parts);
    CHECK(division.parts == parts);
    check_division(spec, division);
  }
}

TEST_CASE("division: one switch, or none, is one part", "[fabric]") {
  CHECK(divide(star(8, kRate, kDelay), 4).parts == 1);
  FabricSpec pair;
  pair.hosts = 2;
  pair.links.push_back({.a = 0, .b = 1, .rate = kRate, .delay = kDelay});
  CHECK(divide(pair, 2).parts == 1);
}

TEST_CASE("division: the lookahead knows what link events will do", "[fabric]") {
  FabricSpec spec =
      clos({.leaves = 2, .spines = 1, .hosts_per_leaf = 2}, {kRate, kRate, kRate, kDelay, kDelay});
  spec.events.push_back(
      {.at = kDelay, .link = 5, .action = LinkAction::delay, .delay = Picos{300'000}});
  CHECK(divide(spec, 2).lookahead == Picos{300'000});
}

}  // namespace
}  // namespace paceline::fabric::division_test
