// Rules of scenarios whose servers have several NICs.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/unit/config/test_algorithms.h"

namespace paceline::config::server_rules_test {
namespace {

using Lines = std::vector<std::string>;

Lines errors_of(const std::string& text) {
  return read_scenario_text(text, "s.toml", "folder", {test_algorithms(), {}}).errors;
}

TEST_CASE("rules of servers of several NICs", "[config]") {
  for (const char* line :
       {"[workload]\npxn = true\n", "[workload]\nper_rail = true\n",
        "[fabric]\nnvlink_rate = \"100Gb/s\"\n", "[fabric]\nnvlink_latency = \"1us\"\n"}) {
    CAPTURE(line);
    const Lines errors = errors_of(line);
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors[0], Catch::Contains("s.toml:2:") &&
                              Catch::Contains(" does nothing with fabric.nics = 1; it is for "
                                              "servers of several NICs"));
  }
  const std::string servers = "[fabric]\nhosts = 8\nnics = 2\n[workload]\nfan_in = 3\n";
  CHECK(errors_of(servers + "pxn = true\nplacement = \"random\"\n") == Lines{});
  CHECK(errors_of(servers + "per_rail = true\n") == Lines{});
  CHECK(errors_of(servers + "per_rail = true\npxn = true\n") ==
        Lines{"s.toml:7:7: workload.pxn does nothing with workload.per_rail = true: the ranks of a "
              "rail are its servers"});
  CHECK(errors_of(servers + "per_rail = true\nreceiver = 4\n") ==
        Lines{"s.toml:7:12: workload.receiver = 4: no such host, allowed is 0 .. 3"});
  CHECK(errors_of("[fabric]\nhosts = 8\nnics = 2\n[workload]\nfan_in = 4\nper_rail = true\n") ==
        Lines{"s.toml:5:10: workload.fan_in = 4: the number of servers = 4 leaves at most 3 "
              "senders"});
  CHECK(errors_of(servers + "placement = \"file\"\n") ==
        Lines{"s.toml:6:13: workload.placement = \"file\" needs workload.placement_file"});
  CHECK(errors_of(servers + "placement = \"spread\"\nplacement_file = \"p\"\n") ==
        Lines{"s.toml:6:13: workload.placement = \"spread\" contradicts "
              "workload.placement_file; allowed with it is \"file\""});
  CHECK(errors_of(servers + "placement = \"packt\"\n").size() == 1);
}

TEST_CASE("rules of planes", "[config]") {
  CHECK(
      errors_of("[transport]\nplanes = \"hash\"\n") ==
      Lines{"s.toml:2:10: transport.planes is for NICs of several ports; allowed with fabric.ports "
            "of 2 and more"});
  const std::string ports = "[fabric]\nhosts = 8\nports = 2\n[workload]\nfan_in = 3\n[transport]\n";
  CHECK(errors_of(ports + "reliability = \"selective\"\n") == Lines{});
  CHECK(errors_of(ports) == Lines{});
  CHECK(errors_of(ports + "planes = \"pinned\"\n") == Lines{});
  CHECK(errors_of(ports + "planes = \"spray\"\n") ==
        Lines{"s.toml:7:10: transport.planes = \"spray\" reorders packets; allowed with "
              "transport.reliability = \"selective\", or use \"hash\" or \"pinned\""});
  CHECK(
      errors_of(ports + "planes = \"hash\"\nmultipath = \"packet\"\n"
                        "reliability = \"selective\"\n") ==
      Lines{"s.toml:7:10: transport.planes = \"hash\" keeps a connection to one port; allowed with "
            "transport.multipath = \"none\""});
}

TEST_CASE("a placement file implies its rule and is relative to the scenario's folder",
          "[config]") {
  const auto s = read_scenario_text("[workload]\nplacement_file = \"p\"\n", "s.toml", "folder",
                                    {test_algorithms(), {}});
  REQUIRE(s.errors == Lines{});
  CHECK(s.value.workload.placement == "file");
  CHECK(s.value.workload.placement_file == "folder/p");
}

}  // namespace
}  // namespace paceline::config::server_rules_test
