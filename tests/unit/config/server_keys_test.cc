// Servers of several NICs and NICs of several ports: how many nodes there are, what they are
// called, and what does not fit.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/config/scenario/fabric_shape.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/unit/config/test_algorithms.h"

namespace paceline::config {
namespace {

using Problems = std::vector<std::string>;

Read<Scenario> read_servers(const std::string& text) {
  return read_scenario_text(text, "s.toml", "folder", {test_algorithms(), {}});
}

TEST_CASE("servers of several NICs, NICs of several ports: counts and names", "[config]") {
  const std::string rails = R"(
[fabric]
topology = "rail"
nics = 8
servers = 12
hosts_per_leaf = 4
spines = 2
cores = 4
ports = 2
)";
  const auto read_rails = read_servers(rails + "[workload]\nfan_in = 9\n");
  REQUIRE(read_rails.errors == Problems{});
  const FabricConfig& f = read_rails.value.fabric;
  CHECK(f.hosts == 96);
  CHECK(f.endpoints() == 192);
  CHECK(f.switches == 2 * (8 * (3 + 2) + 4));
  const FabricShape shape = shape_of(f);
  CHECK((shape.planes == 2 && shape.pods == 8 && shape.leaves == 3 && shape.spines == 2));

  const auto link = [&f](std::string_view name) {
    const FoundLink found = find_link(f, name);
    CAPTURE(name, found.error);
    CHECK(found.error.empty());
    return found.index;
  };
  // NIC 2 of server 3 is host 2 * 12 + 3.
  CHECK(link("host27") == 27);
  CHECK(link("server3.nic2") == 27);
  CHECK(link("host27.p0") == 27);
  CHECK(link("host27.p1") == 96 + 27);
  CHECK(link("server3.nic2.p1") == 96 + 27);
  CHECK(link("server3.nic2.p1-leaf30") == 96 + 27);
  CHECK(endpoint_name(f, 96 + 27) == "host27.p1");
  // The last link: the last spine of plane 1 and the last core of that plane.
  CHECK(link("spine31-core7") == 192 + 48 * 2 + 32 * 2 - 1);
  CHECK(link("core4-spine16") == 192 + 48 * 2 + 16 * 2);
  CHECK(find_link(f, "spine31-core3").error.ends_with("in this topology"));
  CHECK(find_link(f, "spine15-core7").error.ends_with("in this topology"));
  CHECK(find_link(f, "host27.p2").error == "no node \"p2\"; allowed is p0 .. p1");
  CHECK(find_link(f, "server3.nic8").error == "no node \"nic8\"; allowed is nic0 .. nic7");
  CHECK(find_link(f, "server12.nic0").error ==
        "no node \"server12\"; allowed is server0 .. server11");
  for (const char* none : {"server3", "host3.p", "host.p1", "server3.nic", "host3.q1"}) {
    CAPTURE(none);
    CHECK(find_link(f, none).error.starts_with("\"" + std::string(none) + "\" is not a host; "));
  }

  const auto tors = read_servers(R"(
[fabric]
topology = "leaf_spine"
leaves = 8
spines = 4
hosts_per_leaf = 4
nics = 8
ports = 2
planes = "shared"
[workload]
fan_in = 9
)");
  REQUIRE(tors.errors == Problems{});
  CHECK(tors.value.fabric.hosts == 32);
  CHECK(tors.value.fabric.switches == 16 + 4);
  CHECK(shape_of(tors.value.fabric).planes == 1);

  CHECK(read_servers("[fabric]\nhosts = 32\nnics = 8\nports = 8\n").value.fabric.switches == 8);
}

TEST_CASE("servers of several NICs, NICs of several ports: what does not fit", "[config]") {
  const auto error = [](const std::string& fabric) {
    const Problems all = read_servers("workload.fan_in = 3\n[fabric]\n" + fabric).errors;
    return all.size() == 1 ? all[0] : std::to_string(all.size()) + " errors";
  };
  CHECK(error("hosts = 30\nnics = 8\n") ==
        "s.toml:4:8: fabric.nics = 8: the number of hosts, 30, is not a multiple of it");
  CHECK(error("k = 4\nnics = 7\n") ==
        "s.toml:4:8: fabric.nics = 7: the number of hosts, 16, is not a multiple of it");
  CHECK(error("k = 4\nports = 9\n") ==
        "s.toml:4:9: fabric.ports = 9: out of range, allowed is [1 .. 8]");
  CHECK(error("k = 4\nports = 2\nplanes = \"shared\"\n") ==
        "s.toml:5:10: fabric.planes = \"shared\" with fabric.topology = \"fat_tree\"; allowed with "
        "it is \"own\"");
  CHECK(error("topology = \"dumbbell\"\nports = 2\n") ==
        "s.toml:4:9: fabric.ports does nothing with fabric.topology = \"dumbbell\"; it is for star "
        "leaf_spine fat_tree rail");
  CHECK(error("topology_file = \"t.txt\"\nports = 2\n") ==
        "s.toml:4:9: fabric.ports does nothing with fabric.topology = \"file\"; it is for star "
        "leaf_spine fat_tree rail");
  const std::string rail = "topology = \"rail\"\nnics = 8\n";
  CHECK(error(rail + "servers = 20\n") ==
        "s.toml:5:11: fabric.servers = 20: expected a multiple of fabric.hosts_per_leaf = 8, for "
        "each leaf has that many servers' NICs of one rail");
  CHECK(
      error(rail + "servers = 16\nspines = 0\ncores = 0\n") ==
      "s.toml:6:10: fabric.spines = 0: the 2 leaves of a rail would not reach each other; allowed "
      "is 0 with one leaf, fabric.servers = fabric.hosts_per_leaf");
  CHECK(error(rail + "spines = 0\n") ==
        "s.toml:5:10: fabric.cores = 4: cores are linked to spines; allowed with fabric.spines = 0 "
        "is 0");
  CHECK(error(rail + "spines = 3\n") ==
        "s.toml:5:10: fabric.cores = 4: expected a multiple of fabric.spines = 3");
  CHECK(error(rail + "spines = 0\ncores = 0\n") == "0 errors");
  CHECK(
      error("topology = \"leaf_spine\"\nspines = 0\n") ==
      "s.toml:4:10: fabric.spines = 0: allowed is [1 .. 4096]; 0 with fabric.topology = \"rail\"");
  CHECK(error("topology = \"fat_tree\"\ncores = 0\n") ==
        "s.toml:4:9: fabric.cores = 0: allowed is [1 .. 65536]; 0 with fabric.topology = \"rail\"");
  CHECK(error("k = 128\nports = 4\n") ==
        "s.toml:4:9: 524288 hosts of 4 ports: allowed is 1048576 ports in all");
  CHECK(error("k = 8\nports = 2\nsubnet = \"10.0.0.0/24\"\n") ==
        "s.toml:5:10: fabric.subnet = \"10.0.0.0/24\" has addresses for 254 hosts, not for 256");
}

}  // namespace
}  // namespace paceline::config
