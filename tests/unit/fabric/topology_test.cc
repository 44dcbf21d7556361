#include "dataplane/fabric/topology/topology.h"

#include <catch2/catch.hpp>
#include <set>

namespace paceline::fabric {
namespace {

constexpr Rate kSpeed = rate_from_gbps(100);
constexpr Picos kHop = picos_from_micros(1);

FabricSpec wired(std::uint32_t hosts, std::uint32_t switches,
                 const std::vector<std::pair<std::uint32_t, std::uint32_t>>& links) {
  FabricSpec spec;
  spec.hosts = hosts;
  spec.switches = switches;
  for (const auto& [a, b] : links) spec.links.push_back({a, b, kSpeed, kHop});
  return spec;
}

bool mentions(const std::vector<std::string>& errors, const std::string& what) {
  for (const std::string& error : errors) {
    if (error.find(what) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("star: two links between any two hosts") {
  const FabricSpec spec = star(4, kSpeed, kHop);
  CHECK(check(spec).empty());
  const Topology topology(spec);
  for (std::uint32_t a = 0; a < 4; ++a) {
    for (std::uint32_t b = 0; b < 4; ++b) {
      CHECK(topology.reachable(a, b) == (a != b));
      if (a == b) continue;
      CHECK(topology.path(a, b) == std::vector<std::uint32_t>{2 * a, 2 * b + 1});
    }
  }
}

// Hosts 0,1 on switch 4; hosts 2,3 on switch 5; both leaves on spines 6 and 7.
TEST_CASE("equal-cost paths: one per entropy, all of them used") {
  const FabricSpec spec =
      wired(4, 4, {{0, 4}, {1, 4}, {2, 5}, {5, 3}, {4, 6}, {4, 7}, {6, 5}, {5, 7}});
  CHECK(check(spec).empty());
  const Topology topology(spec);
  std::set<std::vector<std::uint32_t>> paths;
  int first = 0;
  for (std::uint32_t entropy = 0; entropy < 1'000; ++entropy) {
    const auto path = topology.path(0, 3, entropy);
    REQUIRE(path.size() == 4);
    REQUIRE(path == topology.path(0, 3, entropy));
    CHECK(path.front() == 0);
    CHECK(path.back() == 6);  // link 3 from a = 5 to b = 3
    first += path[1] == 8 ? 1 : 0;
    paths.insert(path);
  }
  CHECK(paths.size() == 2);
  CHECK(first > 430);  // binomial(1000, 1/2): four standard deviations are 63
  CHECK(first < 570);
  CHECK(topology.path(0, 1).size() == 2);  // same leaf: never up
}

TEST_CASE("switches of a path choose independently") {
  // Two tiers of two choices each: 0 - s4 - {s5,s6} - s7 - {s8,s9} - s10 - 1.
  const FabricSpec spec =
      wired(2, 7, {{0, 2}, {2, 3}, {2, 4}, {3, 5}, {4, 5}, {5, 6}, {5, 7}, {6, 8}, {7, 8}, {8, 1}});
  const Topology topology(spec);
  std::set<std::vector<std::uint32_t>> paths;
  for (std::uint32_t entropy = 0; entropy < 64; ++entropy)
    paths.insert(topology.path(0, 1, entropy));
  CHECK(paths.size() == 4);
}

TEST_CASE("a shorter path is preferred to a longer one") {
  const FabricSpec spec = wired(2, 3, {{0, 2}, {1, 4}, {2, 3}, {3, 4}, {2, 4}});
  const Topology topology(spec);
  CHECK(topology.path(0, 1) == std::vector<std::uint32_t>{0, 8, 3});
}

TEST_CASE("unreachable hosts are an error value, and have no path") {
  const FabricSpec spec = wired(4, 2, {{0, 4}, {1, 4}, {2, 5}, {3, 5}});
  const auto errors = check(spec);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].find("no path from host 0 to host 2 (2 of 4 hosts") != std::string::npos);
  CHECK(check_buildable(spec).empty());
  const Topology topology(spec);
  CHECK_FALSE(topology.reachable(0, 2));
  CHECK(topology.path(1, 3).empty());
  CHECK(topology.reachable(2, 3));
}

TEST_CASE("two hosts back to back") {
  const FabricSpec spec = wired(2, 0, {{1, 0}});
  CHECK(check(spec).empty());
  const Topology topology(spec);
  CHECK(topology.path(0, 1) == std::vector<std::uint32_t>{1});
  CHECK(topology.path(1, 0) == std::vector<std::uint32_t>{0});
}

TEST_CASE("check names everything that is wrong at once") {
  FabricSpec spec = star(3, kSpeed, kHop);
  spec.links[0].rate = {0};
  spec.links[1].delay = {0};
  spec.links[2].loss = 1.5;
  spec.ecn.kmin_bytes = 10;
  spec.ecn.kmax_bytes = 9;
  spec.ecn.pmax = -0.1;
  spec.pfc.alpha = 0;
  spec.pfc.lossless_classes = 0xFF;
  spec.drop_control_ppm = 1'000'001;
  const auto errors = check(spec);
  CHECK(mentions(errors, "link 0 (0 to 3): rate 0"));
  CHECK(mentions(errors, "link 1 (1 to 3): delay"));
  CHECK(mentions(errors, "link 2 (2 to 3): loss"));
  CHECK(mentions(errors, "kmin 10 B must not exceed kmax 9 B"));
  CHECK(mentions(errors, "pmax"));
  CHECK(mentions(errors, "alpha"));
  CHECK(mentions(errors, "control class"));
  CHECK(mentions(errors, "drop_control_ppm 1000001"));

  CHECK(mentions(check(wired(2, 1, {{0, 2}})), "host 1 has 0 links"));
  CHECK(mentions(check(wired(2, 1, {{0, 2}, {1, 2}, {1, 2}})), "host 1 has 2 links"));
  CHECK(mentions(check(wired(2, 1, {{0, 2}, {1, 3}})), "nodes are numbered 0 to 2"));
  CHECK(mentions(check(wired(2, 1, {{0, 2}, {1, 2}, {2, 2}})), "linked to itself"));
  FabricSpec small = star(32, kSpeed, kHop);
  small.buffer_bytes = 1'000'000;  // 32 x (37,500 + 4,096) of it is set aside
  CHECK(mentions(check(small), "leave nothing"));
  small.pfc.enabled = false;
  CHECK(check(small).empty());
}

}  // namespace
}  // namespace paceline::fabric
