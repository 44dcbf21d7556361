#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tools/workload/files/topology_file.h"
#include "tools/workload/placement.h"

namespace paceline::workload {
namespace {

using Reasons = std::vector<std::string>;

// Two GPUs, one server, one NVLink switch (2), one switch (3).
const std::string kOneServer =
    "4 2 1 1 4 H100\n"
    "2 3\n"
    "0 2 2880Gbps 0.000025ms 0\n"
    "1 2 2880Gbps 0.000025ms 0\n"
    "0 3 400Gbps 0.0005ms 0\n"
    "1 3 400Gbps 0.0005ms 0\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

std::vector<std::uint32_t> degrees(const TopologyFile& file) {
  std::vector<std::uint32_t> out(file.numbers.endpoints() + file.numbers.switches());
  for (const config::LinkSpec& link : file.links) {
    ++out[link.a];
    ++out[link.b];
  }
  return out;
}

TEST_CASE("topologies of SimAI: GPUs are hosts, NVLink is left out", "[workload]") {
  const auto read = parse_topology_file(kOneServer, "t");
  REQUIRE(read.errors == Reasons{});
  CHECK(read.value.nics == 2);
  CHECK(read.value.ports == 1);
  CHECK(read.value.nvswitches == 1);
  CHECK(read.value.nvlinks == 2);
  CHECK(read.value.nvlink_rate == rate_from_gbps(2'880));
  CHECK(read.value.nvlink_delay == picos_from_nanos(25));
  REQUIRE(read.value.links.size() == 2);
  CHECK(read.value.links[1].a == 1);
  CHECK(read.value.links[1].b == 2);
  CHECK(read.value.links[1].rate == rate_from_gbps(400));
  CHECK(read.value.links[1].delay == picos_from_nanos(500));
  CHECK(read.value.numbers.number(2) == 3);
}

TEST_CASE("topologies of SimAI: rails and ports of its own files", "[workload]") {
  struct Known {
    const char* name;
    std::uint32_t gpus, ports, switches, nvlinks;
    std::size_t links;  // without NVLink
    std::uint64_t port_gbps;
    std::uint32_t leaf_degree, spine_degree;
  };
  const std::vector<Known> files = {
      {"Spectrum-X_32g_8gps_400Gbps_H100", 32, 1, 12, 32, 64, 400, 8, 8},
      {"AlibabaHPN_32g_8gps_DualToR_SinglePlane_200Gbps_H100", 32, 2, 20, 32, 128, 200, 8, 16},
      {"AlibabaHPN_32g_8gps_DualToR_DualPlane_200Gbps_H100", 32, 2, 20, 32, 96, 200, 6, 8},
      {"AlibabaHPN_1024g_8gps_DualToR_DualPlane_200Gbps_H100", 1'024, 2, 136, 1'024, 3'008, 200,
       188, 8},
      {"DCNpSingleToR_32g_8gps_400Gbps_H100", 32, 1, 4, 32, 36, 400, 18, 2},
      {"DCNpDualToR_32g_8gps_200Gbps_H100", 32, 2, 6, 32, 72, 200, 18, 4},
  };
  for (const Known& known : files) {
    CAPTURE(known.name);
    const auto read =
        read_topology_file(std::string(PACELINE_SOURCE_DIR) +
                           "/tests/unit/workload/topologies/simai/" + known.name + ".topo");
    REQUIRE(read.errors == Reasons{});
    const TopologyFile& file = read.value;
    CHECK(file.numbers.hosts() == known.gpus);
    CHECK(file.numbers.switches() == known.switches);
    CHECK(file.nics == 8);
    CHECK(file.ports == known.ports);
    CHECK(file.nvlinks == known.nvlinks);
    CHECK(file.nvswitches == known.gpus / 8);
    CHECK(file.links.size() == known.links);
    const std::vector<std::uint32_t> degree = degrees(file);
    const std::uint32_t ends = file.numbers.endpoints();
    CHECK(std::all_of(degree.begin(), degree.begin() + ends,
                      [](std::uint32_t links) { return links == 1; }));
    // Leaves come before spines in all of these files.
    CHECK(degree[ends] == known.leaf_degree);
    CHECK(degree.back() == known.spine_degree);
    CHECK(file.links.front().rate == rate_from_gbps(known.port_gbps));
    // GPU 9 is NIC 1 of server 1, and every port of it is called 9.
    const std::uint32_t servers = known.gpus / 8;
    CHECK(file.numbers.host_index(9) == servers + 1);
    for (std::uint32_t port = 0; port < known.ports; ++port) {
      CHECK(file.numbers.number(port * known.gpus + servers + 1) == 9);
    }
    for (std::uint32_t node = ends; node < ends + known.switches; ++node) {
      CHECK(file.numbers.node_index(file.numbers.number(node)) == node);
    }
  }
}

// GPUs are the ranks of a flow list, and the placement that a scenario has by default puts each on
// its own NIC.
TEST_CASE("topologies of SimAI: flows between GPUs", "[workload]") {
  const auto read = read_topology_file(
      std::string(PACELINE_SOURCE_DIR) +
      "/tests/unit/workload/topologies/simai/Spectrum-X_32g_8gps_400Gbps_H100.topo");
  REQUIRE(read.errors == Reasons{});
  const NodeNumbers& numbers = read.value.numbers;
  const auto flows = parse_hpcc_flows("1\n3 9 3 100 1000 2.0\n", "f", numbers);
  REQUIRE(flows.errors == Reasons{});
  CHECK(flows.value.front().src == 3);
  CHECK(flows.value.front().dst == 9);
  CHECK(write_hpcc_flows(flows.value, numbers).find("\n3 9 3 100 1000 2") != std::string::npos);
  const Placement placed = place_ranks("packed", {4, 8}, 1);
  for (std::uint32_t gpu = 0; gpu < 32; ++gpu) CHECK(placed[gpu] == numbers.host_index(gpu));
  CHECK(parse_hpcc_flows("1\n3 32 3 100 1000 2.0\n", "f", numbers).errors.size() == 1);
}

TEST_CASE("topologies of SimAI: two planes have no link between them", "[workload]") {
  const auto read = read_topology_file(std::string(PACELINE_SOURCE_DIR) +
                                       "/tests/unit/workload/topologies/simai/"
                                       "AlibabaHPN_1024g_8gps_DualToR_DualPlane_200Gbps_H100.topo");
  REQUIRE(read.errors == Reasons{});
  for (const config::LinkSpec& link : read.value.links) {
    const std::uint32_t a = read.value.numbers.number(std::min(link.a, link.b));
    const std::uint32_t b = read.value.numbers.number(std::max(link.a, link.b));
    // First ToRs are 1152 to 1159, spines of the second plane 1228 to 1287.
    CHECK_FALSE((a >= 1'152 && a <= 1'159 && b >= 1'228));
    if (a == 9) CHECK((b == 1'153 || b == 1'161));
  }
}

TEST_CASE("topologies of SimAI: what is wrong is named with its place", "[workload]") {
  const auto error = [](const std::string& what, const std::string& by) {
    const auto read = parse_simai_topology(replaced(kOneServer, what, by), "t");
    return read.errors.empty() ? std::string() : read.errors.front();
  };
  CHECK(error("4 2 1", "5 2 1").starts_with("t:1:3: gpus_per_server = 2: 3 GPUs"));
  CHECK(error("4 2 1 1", "4 2 2 1").starts_with("t:1:1: nodes = 4: "));
  CHECK(error("4 2", "4 0").starts_with("t:1:3: gpus_per_server = \"0\": "));
  CHECK(error("2 3\n", "2 2\n") == "t:2:3: switch 2 is named twice");
  CHECK(error("2 3\n", "1 3\n").starts_with("t:2:1: switch = \"1\": "));
  CHECK(error("2 3\n", "2\n") == "t:2:2: 1 switch numbers: line 1 announces 2");
  CHECK(error("0 3 400Gbps", "0 1 400Gbps").starts_with("t:5:1: nodes 0 and 1: a GPU is linked"));
  CHECK(error("0 3 400Gbps", "2 3 400Gbps").starts_with("t:5:1: nodes 2 and 3: a GPU is linked"));
  CHECK(error("0 3 400Gbps", "3 3 400Gbps") == "t:5:1: a link from node 3 to itself");
  CHECK(error("0 3 400Gbps", "0 3 400Gb").starts_with("t:5:5: rate = "));
  CHECK(error("0 3 400Gbps 0.0005ms", "0 3 400Gbps 5").starts_with("t:5:13: delay = "));
  CHECK(error("1 3 400Gbps 0.0005ms 0\n", "0 3 400Gbps 0.0005ms 0\n") ==
        "t:1:1: GPU 1 has 0 links to switches, GPU 0 has 2: expected the same number, at least 1, "
        "for all");
  CHECK(error("1 3 400Gbps 0.0005ms 0\n", "") ==
        "t:5:23: truncated: line 1 announces 4 links, the file has 3");
}

}  // namespace
}  // namespace paceline::workload
