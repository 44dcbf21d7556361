#include "dataplane/config/scenario/link_group.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/config/scenario/fabric_shape.h"

namespace paceline::config {
namespace {

using Links = std::vector<std::uint32_t>;

// Two pods of two leaves and two spines, four cores; two hosts on a leaf; 8 NICs of as many ports
// as given.
FabricConfig fat_tree(std::uint32_t ports) {
  FabricConfig f;
  f.topology = "fat_tree";
  f.pods = f.leaves = f.spines = f.hosts_per_leaf = 2;
  f.cores = 4;
  f.hosts = 8;
  f.ports = ports;
  return f;
}

// The links between a node and others, looked up one by one by their names.
Links links_named(const FabricConfig& fabric, std::uint32_t count, const std::string& node,
                  const std::vector<std::string>& others) {
  Links links;
  for (const std::string& other : others) {
    const FoundLink found = find_link(fabric, node + "-" + other);
    if (found.error.empty()) links.push_back(found.index);
  }
  std::sort(links.begin(), links.end());
  REQUIRE(links.size() == count);
  return links;
}

std::vector<std::string> numbered(const std::string& kind, unsigned count) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < count; ++i) names.push_back(kind + std::to_string(i));
  return names;
}

TEST_CASE("link groups: all links of a switch", "[config]") {
  for (const std::uint32_t ports : {1U, 2U}) {
    CAPTURE(ports);
    const FabricConfig f = fat_tree(ports);
    for (std::uint32_t leaf = 0; leaf < 4 * ports; ++leaf) {
      const std::string name = "leaf" + std::to_string(leaf);
      Links expected = links_named(f, 2, name, numbered("spine", 4 * ports));
      expected.insert(expected.begin(), {2 * leaf, 2 * leaf + 1});  // of its hosts
      CHECK(find_links(f, name).links == expected);
    }
    for (std::uint32_t spine = 0; spine < 4 * ports; ++spine) {
      const std::string name = "spine" + std::to_string(spine);
      Links expected = links_named(f, 2, name, numbered("leaf", 4 * ports));
      for (const std::uint32_t up : links_named(f, 2, name, numbered("core", 4 * ports))) {
        expected.push_back(up);
      }
      CHECK(find_links(f, name).links == expected);
    }
    for (std::uint32_t core = 0; core < 4 * ports; ++core) {
      const std::string name = "core" + std::to_string(core);
      CHECK(find_links(f, name).links == links_named(f, 2, name, numbered("spine", 4 * ports)));
    }
  }
}

TEST_CASE("link groups: planes and servers", "[config]") {
  FabricConfig f = fat_tree(2);
  const Links first = find_links(f, "plane0").links, second = find_links(f, "plane1").links;
  CHECK(first.size() == 8 + 8 + 8);
  CHECK(second.size() == first.size());
  Links all = first;
  all.insert(all.end(), second.begin(), second.end());
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK(all.back() == 47);
  CHECK(std::count(first.begin(), first.end(), find_link(f, "host7").index) == 1);
  CHECK(std::count(second.begin(), second.end(), find_link(f, "host7.p1").index) == 1);
  f.nics = 4;  // two servers
  CHECK(find_links(f, "server1").links == Links{1, 3, 5, 7, 9, 11, 13, 15});
  // Dual ToR: leaves of their own under the same spines.
  FabricConfig tor;
  tor.topology = "leaf_spine";
  tor.leaves = tor.spines = tor.hosts_per_leaf = 2;
  tor.hosts = 4;
  tor.ports = 2;
  tor.planes = "shared";
  CHECK(find_links(tor, "plane1").links == Links{4, 5, 6, 7, 12, 13, 14, 15});
}

TEST_CASE("link groups: a link is a group of one; what is not there is named", "[config]") {
  const FabricConfig f = fat_tree(1);
  CHECK(find_links(f, "host3").links == Links{3});
  CHECK(find_links(f, "leaf4").error == "no \"leaf4\"; allowed is leaf0 .. leaf3");
  CHECK(find_links(f, "plane1").error == "no \"plane1\"; allowed is plane0 .. plane0");
  CHECK(find_links(f, "server8").error == "no \"server8\"; allowed is server0 .. server7");
  CHECK_FALSE(find_links(f, "leaf").error.empty());
  CHECK_FALSE(find_links(f, "leaf1x").error.empty());
  CHECK_FALSE(find_links(f, "").error.empty());
  FabricConfig star;
  star.hosts = 4;
  CHECK(find_links(star, "spine0").error == "this topology has no \"spine0\"");
  CHECK(find_links(star, "leaf0").links == Links{0, 1, 2, 3});
}

}  // namespace
}  // namespace paceline::config
