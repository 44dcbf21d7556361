// What a scenario says of switches beyond single keys: thresholds by the rate of a link, and the
// classes of answers.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/unit/config/test_algorithms.h"

namespace paceline::config {
namespace {

Read<Scenario> read_switches(const std::string& text) {
  return read_scenario_text(text, "s.toml", "folder", {test_algorithms(), {}});
}

using Messages = std::vector<std::string>;

TEST_CASE("thresholds of rates are read beside the general ones", "[config]") {
  const auto s = read_switches(R"(
[fabric.ecn]
kmin = "1MB"
[[fabric.ecn.at_rate]]
rate = "25Gb/s"
kmin = "100kB"
kmax = "400kB"
pmax = 0.2
[[fabric.ecn.at_rate]]
rate = "400Gb/s"
kmin = "1600kB"
kmax = "6400kB"
pmax = 1
)");
  REQUIRE(s.errors == Messages{});
  const EcnConfig& ecn = s.value.fabric.ecn;
  CHECK(ecn.kmin_bytes == 1'000'000);
  REQUIRE(ecn.at_rates.size() == 2);
  CHECK(ecn.at_rates[0].rate == rate_from_gbps(25));
  CHECK(ecn.at_rates[0].kmin_bytes == 100'000);
  CHECK(ecn.at_rates[0].kmax_bytes == 400'000);
  CHECK(ecn.at_rates[0].pmax == 0.2);
  CHECK(ecn.at_rates[1].rate == rate_from_gbps(400));
  CHECK(read_switches("").value.fabric.ecn.at_rates.empty());
}

TEST_CASE("thresholds of rates: what is wrong, where, and what is allowed", "[config]") {
  CHECK(read_switches(R"(
[[fabric.ecn.at_rate]]
rate = "25Gb/s"
kmin = "500kB"
kmax = "400kB"
pmax = 0.2
[[fabric.ecn.at_rate]]
rate = "100Gb/s"
kmin = "100kB"
kmax = "400kB"
pmax = 0.2
[[fabric.ecn.at_rate]]
rate = "100000Mb/s"
kmin = "100kB"
kmax = "400kB"
pmax = 1.5
[[fabric.ecn.at_rate]]
rate = "100000Mb/s"
kmin = "100kB"
kmax = "400kB"
pmax = 0.5
[[fabric.ecn.at_rate]]
rate = "50Gb/s"
kmn = "100kB"
kmax = 7
)")
            .errors ==
        Messages{
            "s.toml:4:8: fabric.ecn.at_rate.kmin = 500kB is above its kmax = 400kB; allowed is "
            "kmin <= kmax",
            "s.toml:16:8: fabric.ecn.at_rate.pmax = 1.5: out of range, allowed is [0 .. 1]",
            "s.toml:18:8: fabric.ecn.at_rate.rate = \"100Gb/s\" was given before; allowed is one "
            "table for each rate",
            "s.toml:22:1: a [[fabric.ecn.at_rate]] needs \"kmin\"",
            "s.toml:22:1: a [[fabric.ecn.at_rate]] needs \"pmax\"",
            "s.toml:24:1: unknown key \"kmn\" in [fabric.ecn.at_rate]; did you mean \"kmin\"?",
            "s.toml:25:8: fabric.ecn.at_rate.kmax = 7: expected a size such as \"400kB\" (units B, "
            "kB, MB, GB, TB, KiB, MiB, GiB or TiB)"});
  CHECK(read_switches("[fabric.ecn]\nat_rate = 3\n").errors ==
        Messages{"s.toml:2:11: fabric.ecn.at_rate: expected an array of tables, "
                 "[[fabric.ecn.at_rate]]"});
  CHECK(read_switches("[fabric.ecn]\nat_rate = [3]\n").errors ==
        Messages{"s.toml:2:12: 3: expected a table, [[fabric.ecn.at_rate]]"});
  CHECK(read_switches("[fabric.ecn]\nat_rates = 3\n").errors ==
        Messages{"s.toml:2:1: unknown key \"at_rates\" in [fabric.ecn]; did you mean "
                 "\"at_rate\"?"});
}

TEST_CASE("classes of answers in switches", "[config]") {
  const auto s = read_switches("[fabric]\nack_class = 3\ncnp_class = 5\n");
  REQUIRE(s.errors == Messages{});
  CHECK(s.value.fabric.ack_class == 3);
  CHECK(s.value.fabric.cnp_class == 5);
  CHECK(read_switches("[fabric]\nack_class = 8\n").errors ==
        Messages{"s.toml:2:13: fabric.ack_class = 8: out of range, allowed is [0 .. 7]"});
  CHECK(
      read_switches("[fabric]\nflow_control = \"credit\"\nack_class = 3\ncnp_class = 2\n").errors ==
      Messages{"s.toml:3:13: fabric.ack_class = 3: fabric.flow_control = \"credit\" rules class "
               "3, and hosts send these packets without credits; allowed is any other class"});
  CHECK(read_switches("[fabric]\ncnp_class = 3\n[transport]\ncalibration = true\n"
                      "cnp_in_ack = true\n")
            .errors ==
        Messages{"s.toml:2:13: fabric.cnp_class does nothing with transport.cnp_in_ack = true; it "
                 "is for CNPs that are packets of their own"});
}

TEST_CASE("notices of switches are read", "[config]") {
  const auto s = read_switches(
      "[fabric.notice]\nenabled = true\nset_point = \"200kB\"\nweight = 1\nsample = \"75kB\"\n");
  REQUIRE(s.errors == Messages{});
  const NoticeConfig& notice = s.value.fabric.notice;
  CHECK(notice.enabled);
  CHECK(notice.set_point_bytes == 200'000);
  CHECK(notice.weight == 1);
  CHECK(notice.sample_bytes == 75'000);
  CHECK_FALSE(read_switches("").value.fabric.notice.enabled);
}

TEST_CASE("notices of switches: what is wrong, where, and what is allowed", "[config]") {
  CHECK(read_switches("[fabric.notice]\nset_point = \"200kB\"\n").errors ==
        Messages{"s.toml:2:13: fabric.notice.set_point does nothing with fabric.notice.enabled = "
                 "false"});
  const auto low = read_switches("[fabric.notice]\nenabled = true\nsample = \"1kB\"\n").errors;
  REQUIRE(low.size() == 1);
  CHECK(low[0].find("s.toml:3:10: fabric.notice.sample = ") == 0);
  const auto none = read_switches("[fabric]\necn.kmin = \"0B\"\nnotice.enabled = true\n").errors;
  REQUIRE(none.size() == 1);
  CHECK(none[0].find("fabric.notice.set_point = 0 is fabric.ecn.kmin, which is 0 B") !=
        std::string::npos);
}

}  // namespace
}  // namespace paceline::config
