// Experiments: one set of scenarios, run under every arm.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/unit/config/test_algorithms.h"

namespace paceline::config {
namespace {

using Lines = std::vector<std::string>;

const std::string kFile = R"(name = "ab"
seed = 5
repetitions = 4
[[arm]]
name = "old"
algorithm = "react"
profile = "paper"
[[arm]]
name = "new"
algorithm = "pace"
params = { gain = 0.25 }
[common.fabric]
hosts = 16
ecn = { kmin = "100kB" }
[common.workload]
message_bytes = "1MB"
[[scenario]]
name = "in"
fabric.ecn.kmax = "200kB"
workload = { kind = "incast", fan_in = 15 }
[[scenario]]
name = "all"
fabric.hosts = 8
workload = { kind = "all_to_all", skew = 1 }
)";

Read<Experiment> read_both(const std::string& text, Lines overrides = {}) {
  return read_experiment_text(text, "e.toml", "", {test_algorithms(), std::move(overrides)});
}

Lines errors_of_experiment(const std::string& text, Lines overrides = {}) {
  return read_both(text, std::move(overrides)).errors;
}

// The file with one line replaced.
std::string changed(const std::string& line, const std::string& by) {
  std::string out = kFile;
  out.replace(out.find(line), line.size(), by);
  return out;
}

TEST_CASE("common tables lie under every scenario", "[config]") {
  const auto e = read_both(kFile);
  REQUIRE(e.errors == Lines{});
  CHECK(e.value.name == "ab");
  CHECK(e.value.repetitions == 4);
  REQUIRE(e.value.arms.size() == 2);
  CHECK(e.value.arms[0].name == "old");
  CHECK(e.value.arms[0].cc.profile == "paper");
  CHECK(e.value.arms[1].cc.algorithm == "pace");
  REQUIRE(e.value.arms[1].cc.params.size() == 1);
  CHECK(e.value.arms[1].cc.params[0].value == 0.25);
  REQUIRE(e.value.scenarios.size() == 2);
  const Scenario& in = e.value.scenarios[0];
  CHECK(in.name == "in");
  CHECK(in.seed == 5);
  CHECK(in.fabric.hosts == 16);
  CHECK(in.fabric.ecn.kmin_bytes == 100'000);
  CHECK(in.fabric.ecn.kmax_bytes == 200'000);
  CHECK(in.workload.message_bytes == 1'000'000);
  const Scenario& all = e.value.scenarios[1];
  CHECK(all.fabric.hosts == 8);
  CHECK(all.fabric.ecn.kmax_bytes == 1'600'000);
  CHECK(all.workload.skew == 1.0);
}

TEST_CASE("overrides reach the experiment, all scenarios, one of them, or an arm", "[config]") {
  const auto e =
      read_both(kFile, {"seed=6", "repetitions=20", "fabric.ecn.kmin=50kB", "fabric.hosts=17",
                        "scenario.in.workload.fan_in=3", "arm.new.cc.params.gain=0.01",
                        "arm.old.params.period=5us", "common.transport.ack_every=2"});
  REQUIRE(e.errors == Lines{});
  CHECK(e.value.seed == 6);
  CHECK(e.value.repetitions == 20);
  for (const Scenario& s : e.value.scenarios) {
    CHECK(s.seed == 6);
    CHECK(s.fabric.ecn.kmin_bytes == 50'000);
    CHECK(s.fabric.hosts == 17);  // over the scenario's own value too
    CHECK(s.transport.ack_every == 2);
  }
  CHECK(e.value.scenarios[0].workload.fan_in == 3);
  CHECK(e.value.arms[1].cc.params[0].value == 0.01);
  CHECK(e.value.arms[0].cc.params[0].value == 5);
}

TEST_CASE("an override for all scenarios may concern some of them only", "[config]") {
  const auto e = read_both(kFile, {"workload.skew=2"});
  REQUIRE(e.errors == Lines{});
  CHECK(e.value.scenarios[1].workload.skew == 2.0);
}

TEST_CASE("misdirected overrides say where they could go", "[config]") {
  CHECK(errors_of_experiment(kFile, {"arm.nwe.params.gain=1"}) ==
        Lines{"--set arm.nwe.params.gain=1: no arm is named \"nwe\"; did you mean \"new\"?"});
  CHECK(errors_of_experiment(kFile, {"scenario.x=1"}) ==
        Lines{"--set scenario.x=1: expected scenario.NAME.key=value"});
  CHECK(errors_of_experiment(kFile, {"cc.params.gain=0.01"}) ==
        Lines{"--set cc.params.gain=0.01: in an experiment every arm has its own; use "
              "arm.NAME.cc.params.gain"});
  CHECK(
      errors_of_experiment(kFile, {"arm.new.params.gain=7"}) ==
      Lines{"--set arm.new.params.gain=7: arm.params.gain = 7: out of range, allowed is [0 .. 1]"});
  // Once, although it concerns both scenarios.
  CHECK(errors_of_experiment(kFile, {"fabric.hots=7"}) ==
        Lines{"--set fabric.hots=7: unknown key \"hots\" in [fabric]; did you mean \"hosts\"?"});
}

TEST_CASE("an error in a shared table is reported once, where it stands", "[config]") {
  CHECK(errors_of_experiment(changed("hosts = 16", "hosts = 0")) ==
        Lines{"e.toml:13:9: fabric.hosts = 0: out of range, allowed is [2 .. 524288]"});
  CHECK(errors_of_experiment(changed("[common.fabric]", "[comon.fabric]")).at(0) ==
        "e.toml:12:2: unknown key \"comon\"; did you mean \"common\"?");
}

TEST_CASE("what an experiment needs", "[config]") {
  CHECK(errors_of_experiment("") ==
        Lines{"e.toml:1:1: an experiment compares at least 2 arms; 0 [[arm]] given",
              "e.toml:1:1: an experiment needs at least one [[scenario]]"});
  CHECK(errors_of_experiment(changed("name = \"new\"", "name = \"old\"")) ==
        Lines{"e.toml:9:8: a second arm named \"old\""});
  CHECK(errors_of_experiment(changed("name = \"all\"", "name = \"in\"")) ==
        Lines{"e.toml:22:8: a second scenario named \"in\""});
  CHECK(errors_of_experiment(changed("name = \"all\"\n", "")) ==
        Lines{"e.toml:21:1: a [[scenario]] needs a name"});
  CHECK(errors_of_experiment(changed("algorithm = \"pace\"\n", "")) ==
        Lines{"e.toml:8:1: an [[arm]] needs an algorithm"});
  CHECK(errors_of_experiment(changed("repetitions = 4", "repetitions = 1")) ==
        Lines{"e.toml:3:15: repetitions = 1: out of range, allowed is [2 .. 100000]"});
  CHECK(errors_of_experiment(changed("name = \"all\"", "name = \"all\"\nseed = 3")) ==
        Lines{"e.toml:23:1: seed does not belong to a scenario of an experiment: it is set once, "
              "at the "
              "top of the file"});
  CHECK(
      errors_of_experiment(changed("name = \"all\"", "name = \"all\"\ncc.algorithm = \"react\"")) ==
      Lines{"e.toml:23:1: cc does not belong to a scenario of an experiment: congestion control is "
            "set per [[arm]]"});
  CHECK(errors_of_experiment("arm = 3\n").back() ==
        "e.toml:1:7: arm: expected an array of tables, [[arm]]");
  CHECK(errors_of_experiment(kFile + "[fabric]\nhosts = 3\n")
            .at(0)
            .starts_with("e.toml:25:2: in an experiment "));
}

TEST_CASE("all errors of an experiment are reported", "[config]") {
  std::string text = changed("fan_in = 15", "fan_in = 16");
  text.replace(text.find("gain = 0.25"), 11, "gian = 0.25");
  text.replace(text.find("seed = 5"), 8, "seed = -5");
  text.replace(text.find("skew = 1 "), 9, "skw = 1 ");
  const Lines errors = errors_of_experiment(text);
  REQUIRE(errors.size() == 4);
  CHECK(errors[0].starts_with("e.toml:2:8: seed = -5: out of range"));
  CHECK(errors[1].starts_with("e.toml:11:12: unknown parameter \"gian\" of pace"));
  CHECK(errors[2].starts_with("e.toml:20:40: workload.fan_in = 16"));
  CHECK(errors[3].starts_with("e.toml:24:35: unknown key \"skw\""));
}

}  // namespace
}  // namespace paceline::config
