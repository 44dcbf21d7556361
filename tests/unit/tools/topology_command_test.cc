// `paceline topology`: figures against closed forms, pictures, exports that are read back.

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/unit/tools/command.h"

namespace paceline::tools {
namespace {

const std::string kTopologies =
    std::string(PACELINE_SOURCE_DIR) + "/tests/unit/workload/topologies/";

nlohmann::json figures_of(const Folder& folder, const std::string& file,
                          std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"topology", file, "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = paceline_command(folder, arguments);
  CAPTURE(file, outcome.err);
  REQUIRE(outcome.code == 0);
  return nlohmann::json::parse(outcome.out);
}

std::uint64_t nodes(const nlohmann::json& figures, const std::string& tier) {
  for (const nlohmann::json& one : figures.at("tiers")) {
    if (one.at("name") == tier) return one.at("nodes");
  }
  return 0;
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

constexpr const char* kRails = R"(
[fabric]
topology = "rail"
nics = 8
servers = 128
hosts_per_leaf = 64
spines = 32
cores = 64
rate = "400Gb/s"
[workload]
kind = "permutation"
)";

TEST_CASE("topology: figures of rails in closed form", "[topology_command]") {
  Folder folder;
  folder.write("rails.toml", kRails);
  const nlohmann::json rails = figures_of(folder, "rails.toml");
  CHECK(rails.at("servers") == 128);
  CHECK(rails.at("nics") == 1'024);
  CHECK(nodes(rails, "hosts") == 1'024);
  CHECK(nodes(rails, "leaves") == 16);
  CHECK(nodes(rails, "spines") == 256);
  CHECK(nodes(rails, "cores") == 64);
  // Leaves 64 down to 32 up; spines 2 down to 2 up; hosts, leaf-spine and spine-core links.
  CHECK(rails.at("tiers")[1].at("oversubscription") == 2);
  CHECK(rails.at("tiers")[2].at("oversubscription") == 1);
  CHECK(rails.at("links")[0].at("count") == 1'024);
  CHECK(rails.at("links")[1].at("count") == 16 * 32);
  CHECK(rails.at("links")[2].at("count") == 256 * 2);
  CHECK(rails.at("bisection_bps") == 400e9 * 16 * 32 / 2);
  CHECK(rails.at("paths").at("least") == 1);
  CHECK(rails.at("paths").at("most") == 64);
  CHECK(rails.at("unreachable_pairs") == 0);

  const nlohmann::json only = figures_of(folder, "rails.toml", {"--set", "fabric.cores=0"});
  // 8 * 7 / 2 pairs of rails of 128 NICs each.
  CHECK(only.at("unreachable_pairs") == 28 * 128 * 128);
  CHECK(only.at("unreachable_example") == "host0 (server0.nic0) and host128 (server0.nic1)");
  CHECK(only.at("bisection_bps") == 0);
  const Outcome text = paceline_command(
      folder, {"topology", "rails.toml", "--set", "fabric.cores=0", "--set", "fabric.ports=2"});
  CHECK(text.code == 0);
  CHECK(text.out.find("2 ports a NIC, 2 planes") != std::string::npos);
  CHECK(text.out.find("458752 pairs of NICs do not reach each other, such as host0 "
                      "(server0.nic0) and host128 (server0.nic1)") != std::string::npos);
}

TEST_CASE("topology: regular fabrics say the same as files without a shape", "[topology_command]") {
  Folder folder;
  folder.write("rails.toml", kRails);
  folder.write("tree.toml", "[fabric]\nk = 8\n[workload]\nkind = \"permutation\"\n");
  folder.write("bell.toml",
               "[fabric]\ntopology = \"dumbbell\"\nhosts = 8\nlinks_per_pair = 3\n[workload]\nkind "
               "= \"permutation\"\n");
  for (const char* file : {"rails.toml", "tree.toml", "bell.toml"}) {
    for (const char* format : {"hpcc", "simai"}) {
      CAPTURE(file, format);
      const Outcome out = paceline_command(folder, {"topology", file, "--export", format});
      REQUIRE(out.code == 0);
      folder.write("exported", out.out);
      nlohmann::json regular = figures_of(folder, file);
      nlohmann::json counted = figures_of(folder, "exported");
      if (std::string(format) == "hpcc") regular["servers"] = regular.at("nics");
      for (nlohmann::json* json : {&regular, &counted}) {
        json->erase("name");
        json->erase("nvlink");
      }
      CHECK(regular == counted);
    }
  }
  const Outcome tree = paceline_command(folder, {"topology", "tree.toml", "--export", "htsim"});
  REQUIRE(tree.code == 0);
  folder.write("tree.topo", tree.out);
  nlohmann::json regular = figures_of(folder, "tree.toml");
  nlohmann::json imported = figures_of(folder, "tree.topo");
  CHECK(imported == regular);
  const Outcome keys = paceline_command(folder, {"topology", "tree.topo", "--export", "scenario"});
  REQUIRE(keys.code == 0);
  folder.write("again.toml", keys.out);
  imported = figures_of(folder, "again.toml", {"--set", "workload.kind=permutation"});
  imported["name"] = regular.at("name");
  CHECK(imported == regular);
}

TEST_CASE("topology: files of SimAI and htsim", "[topology_command]") {
  Folder folder;
  const nlohmann::json hpn = figures_of(
      folder, kTopologies + "simai/AlibabaHPN_1024g_8gps_DualToR_DualPlane_200Gbps_H100.topo");
  CHECK(hpn.at("servers") == 128);
  CHECK(hpn.at("ports") == 2);
  CHECK(hpn.at("planes") == 2);
  CHECK(nodes(hpn, "leaves") == 16);
  CHECK(nodes(hpn, "spines") == 120);
  CHECK(hpn.at("nvlink").at("links") == 1'024);
  CHECK(hpn.at("paths").at("most") == 60);
  // 128 x 200G down, 60 x 400G up.
  CHECK(hpn.at("tiers")[1].at("oversubscription").get<double>() == Approx(16.0 / 15));
  CHECK(figures_of(folder,
                   kTopologies + "simai/AlibabaHPN_32g_8gps_DualToR_SinglePlane_200Gbps_H100.topo")
            .at("planes") == 1);

  const nlohmann::json htsim =
      figures_of(folder, kTopologies + "htsim/leaf_spine_8192_400g_8_to_1.topo");
  CHECK(nodes(htsim, "leaves") == 128);
  CHECK(nodes(htsim, "spines") == 8);
  CHECK(htsim.at("tiers")[1].at("oversubscription") == 8);

  const Outcome bundle = paceline_command(folder, {"topology", kTopologies + "htsim/test.topo"});
  CHECK(bundle.code == 2);
  CHECK(bundle.err.find("tier 2 has a Bundle") != std::string::npos);
}

TEST_CASE("topology: a picture has a row a tier, and at most 64 boxes a row",
          "[topology_command]") {
  Folder folder;
  folder.write("rails.toml", kRails);
  const Outcome outcome = paceline_command(
      folder, {"topology", "rails.toml", "--set", "fabric.ports=2", "-o", "rails.svg"});
  REQUIRE(outcome.code == 0);
  const std::string svg = folder.read("rails.svg");
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("script") == std::string::npos);
  // 1024 hosts in 16 boxes of a leaf each, 32 leaves, 512 spines and 128 cores in 64.
  CHECK(count_of(svg, "<title>hosts ") == 16);
  CHECK(count_of(svg, "<title>leaves ") == 32);
  CHECK(count_of(svg, "<title>spines ") == 64);
  CHECK(count_of(svg, "<title>cores ") == 64);
  CHECK(svg.find("hosts 960 to 1023") != std::string::npos);
  CHECK(svg.find("port 1") != std::string::npos);
}

TEST_CASE("topology: bad input", "[topology_command]") {
  Folder folder;
  folder.write("rails.toml", kRails);
  const auto error = [&folder](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "topology");
    const Outcome outcome = paceline_command(folder, arguments);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  CHECK(error({"none.toml"}).find("none.toml") != std::string::npos);
  CHECK(error({"rails.toml", "--set", "fabric.servers=100"}).find("fabric.servers = 100") !=
        std::string::npos);
  CHECK(error({"rails.toml", "--export", "htsim"}).find("fabric.topology = \"rail\"") !=
        std::string::npos);
  CHECK(error({"rails.toml", "--set", "fabric.ports=2", "--export", "hpcc"}).find("one link") !=
        std::string::npos);
  CHECK(error({"rails.toml", "-o", "nowhere/x.svg"}).find("no folder nowhere") !=
        std::string::npos);
}

}  // namespace
}  // namespace paceline::tools
