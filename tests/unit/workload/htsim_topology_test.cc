#include "tools/workload/files/htsim_topology.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "dataplane/config/scenario/fabric_shape.h"

namespace paceline::workload {
namespace {

using Errors = std::vector<std::string>;

std::string htsim_file(const std::string& name) {
  std::ifstream in(std::string(PACELINE_SOURCE_DIR) + "/tests/unit/workload/topologies/htsim/" +
                   name + ".topo");
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE_FALSE(text.str().empty());
  return text.str();
}

std::string changed_text(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

TEST_CASE("topologies of htsim: switches and links of its own files", "[workload]") {
  struct Counts {
    std::uint32_t leaves, spines, cores;
    std::uint64_t links;
  };
  std::map<std::string, Counts> files = {
      {"leaf_spine_1024", {32, 32, 0, 2'048}},
      {"leaf_spine_1024_oversub", {32, 8, 0, 1'280}},
      {"leaf_spine_1024_oversub_8-1", {32, 4, 0, 1'152}},
      {"leaf_spine_tiny", {4, 2, 0, 40}},
      {"fat_tree_128_1os", {32, 32, 16, 384}},
      {"fat_tree_128_4os", {32, 32, 4, 288}},
      {"fat_tree_128_8os", {32, 8, 2, 176}},
      {"fat_tree_1024", {128, 128, 64, 3'072}},
      {"fat_tree_1024_1os", {128, 128, 64, 3'072}},
      {"fat_tree_1024_4os", {128, 32, 16, 1'536}},
      {"fat_tree_1024_8os", {128, 32, 8, 1'408}},
      {"fat_tree_8192_1os", {512, 512, 256, 24'576}},
      {"fat_tree_8192_4os", {512, 128, 64, 12'288}},
      {"fat_tree_8192_8os", {512, 128, 32, 11'264}},
      {"test", {4, 4, 4, 32}},
  };
  for (const char* rate : {"100", "200", "400", "800"}) {
    const std::string stem = std::string("leaf_spine_8192_") + rate + "g";
    files[stem] = {128, 64, 0, 16'384};
    files[stem + "_4_to_1"] = {128, 16, 0, 10'240};
    files[stem + "_8_to_1"] = {128, 8, 0, 9'216};
  }
  for (const auto& [name, counts] : files) {
    CAPTURE(name);
    const std::string text = htsim_file(name);
    const auto read = parse_htsim_topology(text, name);
    REQUIRE(read.errors == Errors{});
    CHECK(read.value.leaves == counts.leaves);
    CHECK(read.value.spines == counts.spines);
    CHECK(read.value.cores == counts.cores);
    CHECK(read.value.links() == counts.links);

    const FabricFromHtsim made = fabric_from_htsim(read.value);
    if (name == "test") {
      CHECK(made.error.find("Bundle") != std::string::npos);
      continue;
    }
    REQUIRE(made.error.empty());
    const config::FabricShape shape = config::shape_of(made.fabric);
    CHECK(shape.endpoints() == read.value.hosts);
    CHECK(shape.switches() == counts.leaves + counts.spines + counts.cores);
    // What is written says the same again.
    const auto written = write_htsim_topology(made.fabric);
    REQUIRE(written.errors == Errors{});
    const auto again = parse_htsim_topology(written.value, "written");
    REQUIRE(again.errors == Errors{});
    CHECK(again.value.links() == counts.links);
    for (std::uint32_t t = 0; t < read.value.tiers; ++t) {
      CHECK(again.value.tier[t].down_rate == read.value.tier[t].down_rate);
      CHECK(again.value.tier[t].down_delay == read.value.tier[t].down_delay);
      CHECK(again.value.tier[t].radix_down == read.value.tier[t].radix_down);
      CHECK(again.value.tier[t].radix_up == read.value.tier[t].radix_up);
    }
  }
}

TEST_CASE("topologies of htsim: what is wrong is named with its place", "[workload]") {
  const std::string tiny = htsim_file("leaf_spine_tiny");
  const auto error = [](const std::string& text) {
    const auto read = parse_htsim_topology(text, "t");
    return read.errors.empty() ? std::string() : read.errors.front();
  };
  CHECK(error(tiny).empty());
  CHECK(error(changed_text(tiny, "Nodes 32", "NODES 32 # of them")).empty());
  CHECK(error(changed_text(tiny, "Nodes 32", "Nodes")) ==
        "t:1:6: 1 columns: expected 2, a key and a number");
  CHECK(error(changed_text(tiny, "Radix_Up 2", "Radix_Up two"))
            .starts_with("t:8:10: Radix_Up = \"two\": "));
  CHECK(error(changed_text(tiny, "Radix_Up 2", "Radix_Up 2\nradix_up 2")) ==
        "t:9:1: radix_up is given twice");
  CHECK(error(changed_text(tiny, "Tier 0", "Tier 3")).starts_with("t:5:6: Tier = \"3\": "));
  CHECK(error(changed_text(tiny, "Tier 0", ""))
            .starts_with("t:6:1: Downlink_speed_Gbps before any Tier"));
  CHECK(error(changed_text(tiny, "Radix_Up 2", "Radix_Sideways 2"))
            .starts_with("t:8:1: unknown key Radix_Sideways: expected "));
  CHECK(error(changed_text(tiny, "Tiers 2", "Tiers 3")).ends_with("tier 1: radix_up is missing"));
  CHECK(error(changed_text(tiny, "Nodes 32", "Nodes 33")).find("is not a whole number") !=
        std::string::npos);
  CHECK(error(changed_text(tiny, "Radix_Up 2", "Radix_Up 3")).find("is not Oversubscribed = 4") !=
        std::string::npos);
  CHECK(error("").ends_with("nodes is missing"));
  CHECK(fabric_from_htsim(parse_htsim_topology(
                              changed_text(tiny, "Switch_Latency_ns 0", "Switch_Latency_ns 5"), "t")
                              .value)
            .error.find("Switch_Latency_ns") != std::string::npos);
}

TEST_CASE("topologies of htsim: what cannot be written is refused", "[workload]") {
  config::FabricConfig f;
  CHECK(write_htsim_topology(f).errors.size() == 1);  // a star
  f.topology = "leaf_spine";
  CHECK(write_htsim_topology(f).errors.empty());
  f.spines = 3;  // 8 down over 3 up
  CHECK(write_htsim_topology(f).errors.size() == 1);
  f.spines = 4;
  f.ports = 2;
  CHECK(write_htsim_topology(f).errors.size() == 1);
  f.ports = 1;
  f.rate = rate_from_mbps(2'500);
  CHECK(write_htsim_topology(f).errors.size() == 1);
}

}  // namespace
}  // namespace paceline::workload
