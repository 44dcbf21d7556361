// What a scenario file may say, and what its author is told when it says something else.

#include "dataplane/config/scenario/scenario_reader.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "cc/registry.h"
#include "dataplane/config/scenario/fabric_shape.h"
#include "tests/unit/config/test_algorithms.h"

namespace paceline::config {
namespace {

using Lines = std::vector<std::string>;

Read<Scenario> read(const std::string& text, Lines overrides = {}) {
  return read_scenario_text(text, "s.toml", "folder", {test_algorithms(), std::move(overrides)});
}

Lines errors_of(const std::string& text, Lines overrides = {}) {
  return read(text, std::move(overrides)).errors;
}

TEST_CASE("an empty scenario is the default one, named after its file", "[config]") {
  const auto s = read("");
  REQUIRE(s.errors == Lines{});
  CHECK(s.value.name == "s");
  CHECK(s.value.fabric.hosts == 32);
  CHECK(s.value.duration == kNever);
}

TEST_CASE("every kind of value reaches its field", "[config]") {
  const auto s = read(R"(
schema = 1
name = "all"
seed = 7
duration = "10ms"
max_hops = 4_000_000
[fabric]
hosts = 64
rate = "400Gbps"
delay = "600 ns"
buffer = "16MiB"
loss = 1e-4
subnet = "10.1.0.0/16"
ecn = { enabled = false, kmin = "1MB", kmax = "2MB", pmax = 1 }
[fabric.pfc]
alpha = 0.5
headroom = "50kB"
[transport]
payload_bytes = "1024B"
ack_every = 4
cnp_interval = "4us"
peers = "discover"
foreign_hosts = [3, 5]
[cc]
algorithm = "pace"
profile = "fast"
fallback = "react"
params = { gain = 0.25, period = "0.1ms", on = true, stages = 3 }
[workload]
kind = "incast"
fan_in = 63
message_bytes = 1000
)");
  REQUIRE(s.errors == Lines{});
  const Scenario& v = s.value;
  CHECK(v.name == "all");
  CHECK(v.seed == 7);
  CHECK(v.duration == picos_from_micros(10'000));
  CHECK(v.max_hops == 4'000'000);
  CHECK(v.fabric.rate == rate_from_gbps(400));
  CHECK(v.fabric.delay == picos_from_nanos(600));
  CHECK(v.fabric.buffer_bytes == 16ULL << 20);
  CHECK(v.fabric.loss == 1e-4);
  CHECK(v.fabric.subnet == "10.1.0.0/16");
  CHECK_FALSE(v.fabric.ecn.enabled);
  CHECK(v.fabric.ecn.kmin_bytes == 1'000'000);
  CHECK(v.fabric.ecn.pmax == 1.0);
  CHECK(v.fabric.pfc.alpha == 0.5);
  CHECK(v.fabric.pfc.headroom_bytes == 50'000);
  CHECK(v.transport.payload_bytes == 1024);
  CHECK(v.transport.peers == "discover");
  CHECK(v.transport.foreign_hosts == std::vector<std::uint32_t>{3, 5});
  CHECK(v.cc.algorithm == "pace");
  CHECK(v.cc.profile == "fast");
  REQUIRE(v.cc.params.size() == 4);
  CHECK(v.cc.params[0].name == "gain");
  CHECK(v.cc.params[0].value == 0.25);
  CHECK(v.cc.params[1].name == "on");
  CHECK(v.cc.params[1].value == 1);
  CHECK(v.cc.params[2].value == 100);  // period, in us
  CHECK(v.workload.message_bytes == 1000);
}

TEST_CASE("an unknown key is answered with the nearest one", "[config]") {
  CHECK(errors_of("[fabric.ecn]\nkmim = \"1kB\"\n") ==
        Lines{"s.toml:2:1: unknown key \"kmim\" in [fabric.ecn]; did you mean \"kmin\"?"});
  CHECK(errors_of("[transport]\nshards = 2\n") ==
        Lines{"s.toml:2:1: unknown key \"shards\" in [transport]; it was removed: leave it out"});
  CHECK(errors_of("[fabirc]\n") ==
        Lines{"s.toml:1:2: unknown key \"fabirc\"; did you mean \"fabric\"?"});
  CHECK(errors_of("[fabric]\nkmin = \"1kB\"\n") ==
        Lines{"s.toml:2:1: unknown key \"kmin\" in [fabric]; did you mean \"fabric.ecn.kmin\"?"});
  CHECK(errors_of("[cc]\nseed = 7\n") ==
        Lines{"s.toml:2:1: unknown key \"seed\" in [cc]; it stands at the top of the file, outside "
              "every table"});
  CHECK(errors_of("[fabric.ecn]\nsteepness = 1\n") ==
        Lines{"s.toml:2:1: unknown key \"steepness\" in [fabric.ecn]; allowed is \"enabled\", "
              "\"kmin\", "
              "\"kmax\", \"pmax\" or \"at_rate\""});
}

TEST_CASE("a value of the wrong kind, unit or range is named with what is allowed", "[config]") {
  CHECK(errors_of("[fabric]\nrate = \"-100Gb/s\"\n") ==
        Lines{"s.toml:2:8: fabric.rate = \"-100Gb/s\": it must not be negative; expected a rate "
              "such as "
              "\"100Gb/s\" (units b/s, kb/s, Mb/s, Gb/s or Tb/s)"});
  CHECK(errors_of("[fabric]\nrate = 100\n") ==
        Lines{"s.toml:2:8: fabric.rate = 100: expected a rate such as \"100Gb/s\" (units b/s, "
              "kb/s, Mb/s, "
              "Gb/s or Tb/s)"});
  CHECK(errors_of("[fabric]\nrate = \"0Gb/s\"\n") ==
        Lines{"s.toml:2:8: fabric.rate = \"0Gb/s\": out of range, allowed is [1Mb/s .. 3200Gb/s]"});
  CHECK(errors_of("[fabric]\nhosts = 1\n[workload]\nkind=\"permutation\"\n") ==
        Lines{"s.toml:2:9: fabric.hosts = 1: out of range, allowed is [2 .. 524288]"});
  CHECK(errors_of("[fabric]\nhosts = 32.0\n") ==
        Lines{"s.toml:2:9: fabric.hosts = 32: expected an integer"});
  CHECK(errors_of("[fabric]\nhosts = \"many\"\n") ==
        Lines{"s.toml:2:9: fabric.hosts = \"many\": expected an integer"});
  CHECK(errors_of("[fabric]\nloss = nan\n") ==
        Lines{"s.toml:2:8: fabric.loss = nan: expected a finite number"});
  CHECK(errors_of("[fabric]\nbuffer = 1000000\n") ==
        Lines{"s.toml:2:10: fabric.buffer = 1000000: expected a size such as \"400kB\" (units B, "
              "kB, MB, "
              "GB, TB, KiB, MiB, GiB or TiB)"});
  CHECK(errors_of("fabric = 3\n") == Lines{"s.toml:1:10: fabric = 3: expected a table, [fabric]"});
  CHECK(errors_of("[fabric]\ntopology = \"sta\"\n") ==
        Lines{"s.toml:2:12: fabric.topology = \"sta\": did you mean \"star\"? allowed is \"star\", "
              "\"leaf_spine\", \"fat_tree\", \"rail\", \"dumbbell\" or \"file\""});
  CHECK(errors_of("[workload]\nkind = \"open_loop\"\nload = 0.0\n") ==
        Lines{"s.toml:3:8: workload.load = 0: out of range, allowed is (0 .. 1]"});
  CHECK(errors_of("[workload]\nkind = \"open_loop\"\nload = 1.1\n") ==
        Lines{"s.toml:3:8: workload.load = 1.1: out of range, allowed is (0 .. 1]"});
  CHECK(errors_of("[workload]\nkind = \"all_to_all\"\nskew = 9\n") ==
        Lines{"s.toml:3:8: workload.skew = 9: out of range, allowed is [0 .. 8]"});
  CHECK(errors_of("[transport]\nforeign_hosts = [1, \"x\", -1]\n") ==
        Lines{"s.toml:2:21: transport.foreign_hosts = \"x\": expected an array of integers",
              "s.toml:2:26: transport.foreign_hosts = -1: out of range, allowed is [0 .. 524287]"});
  CHECK(errors_of("name = \"a b\"\n") == Lines{"s.toml:1:8: name = \"a b\": expected a name of "
                                               "letters, digits, \"-\" and \"_\", at most "
                                               "64"});
}

TEST_CASE("rules between keys", "[config]") {
  CHECK(errors_of("[workload]\nreceiver = 32\n") ==
        Lines{"s.toml:2:12: workload.receiver = 32: no such host, allowed is 0 .. 31"});
  CHECK(errors_of("[fabric]\nhosts = 8\n[workload]\nfan_in = 8\n") ==
        Lines{"s.toml:4:10: workload.fan_in = 8: fabric.hosts = 8 leaves at most 7 senders"});
  CHECK(
      errors_of("[fabric.ecn]\nkmin = \"2MB\"\n") ==
      Lines{
          "s.toml:2:8: fabric.ecn.kmin = 2MB is above fabric.ecn.kmax = 1600kB; allowed is kmin <= "
          "kmax"});
  CHECK(errors_of("[transport]\npayload_bytes = 1000\n") ==
        Lines{"s.toml:2:17: transport.payload_bytes = 1000: allowed is 256, 512, 1024, 2048 or "
              "4096 (any "
              "value in [64 .. 4096] with transport.calibration = true)"});
  CHECK(errors_of("[transport]\npayload_bytes = 128\n").size() == 1);
  CHECK(errors_of("[transport]\npayload_bytes = 1000\ncalibration = true\ncnp_in_ack = true\n"
                  "[fabric]\nfixed_overhead_bytes = 48\n") == Lines{});
  CHECK(errors_of("[transport]\ncnp_in_ack = true\n").size() == 1);
  CHECK(errors_of("[fabric]\nfixed_overhead_bytes = 48\n").size() == 1);
  CHECK(errors_of("[transport]\nforeign_hosts = [32]\n") ==
        Lines{"s.toml:2:17: transport.foreign_hosts names host 32: allowed is 0 .. 31"});
  CHECK(
      errors_of("[workload]\nkind = \"ring_all_reduce\"\n") ==
      Lines{"s.toml:2:8: ring_all_reduce takes either workload.all_reduce_bytes or workload.model; "
            "neither is"});
  CHECK(errors_of("[workload]\nkind = \"ring_all_reduce\"\nmodel = \"llama3-70b\"\n"
                  "all_reduce_bytes = \"1MB\"\n")
            .size() == 1);
  CHECK(errors_of("[workload]\nkind = \"flows\"\n") ==
        Lines{"s.toml:2:8: workload.kind = \"flows\" needs workload.flows_file"});
  CHECK(errors_of("[workload]\nkind = \"open_loop\"\ncdf = \"file\"\n").size() == 1);
  CHECK(errors_of("[workload]\nkind = \"open_loop\"\ncdf = \"websearch\"\ncdf_file = \"x\"\n")
            .size() == 1);
  const std::string open = "[workload]\nkind = \"open_loop\"\n";
  CHECK(errors_of(open + "incast_load = 0.02\nfan_in = 31\nmessage_bytes = 500000\n") == Lines{});
  CHECK(errors_of(open + "incast_load = 0.02\nfan_in = 32\n") ==
        Lines{"s.toml:4:10: workload.fan_in = 32: fabric.hosts = 32 leaves at most 31 senders"});
  CHECK(errors_of(open + "message_bytes = 500000\n") ==
        Lines{"s.toml:3:17: workload.message_bytes does nothing with workload.kind = "
              "\"open_loop\" without workload.incast_load"});
  CHECK(errors_of(open + "incast_load = -0.1\n") ==
        Lines{"s.toml:3:15: workload.incast_load = -0.1: out of range, allowed is [0 .. 1]"});
  CHECK(errors_of("[workload]\nincast_load = 0.1\n") ==
        Lines{"s.toml:2:15: workload.incast_load does nothing with workload.kind = \"incast\"; it "
              "is for open_loop"});
  CHECK(errors_of("[fabric]\ntopology = \"file\"\n").size() == 1);
  CHECK(errors_of("[fabric]\ntopology = \"star\"\ntopology_file = \"x\"\n").size() == 1);
  CHECK(
      errors_of("[fabric]\nsubnet = \"10.0.0.0/28\"\n") ==
      Lines{"s.toml:2:10: fabric.subnet = \"10.0.0.0/28\" has addresses for 14 hosts, not for 32"});
  for (const char* subnet : {"10.0.0.0", "10.0.0/8", "10.0.0.0/33", "10.0.0.1/24", "10.0.0.256/8",
                             "x", "10.0.0.0/8/", "10.0.0.0/-8", ""}) {
    INFO(subnet);
    CHECK(errors_of(std::string("[fabric]\nsubnet = \"") + subnet + "\"\n").size() == 1);
  }
  // A check over a value that could not be read would only confuse.
  CHECK(errors_of("[fabric.ecn]\nkmin = \"2MB\"\nkmax = \"3\"\n").size() == 1);
  CHECK(errors_of("[workload]\nkind = \"all_to_all\"\nfan_in = 3\n") ==
        Lines{"s.toml:3:10: workload.fan_in does nothing with workload.kind = \"all_to_all\"; it "
              "is for "
              "incast open_loop"});
}

TEST_CASE("congestion control is checked against the algorithms' own tables", "[config]") {
  CHECK(errors_of("[cc]\nalgorithm = \"raect\"\n") ==
        Lines{"s.toml:2:13: cc.algorithm = \"raect\": no such algorithm; did you mean \"react\"? "
              "allowed is "
              "\"react\" or \"pace\""});
  CHECK(
      errors_of("[cc]\nalgorithm = \"react\"\nprofile = \"papr\"\n") ==
      Lines{
          "s.toml:3:11: cc.profile = \"papr\": react has no such profile; did you mean \"paper\"? "
          "allowed is \"default\" or \"paper\""});
  CHECK(
      errors_of("[cc]\nalgorithm = \"react\"\nfallback = \"pace\"\n") ==
      Lines{
          "s.toml:3:12: cc.fallback = \"pace\": no such reactive algorithm; allowed is \"react\""});
  CHECK(errors_of("[cc]\nalgorithm = \"react\"\n[cc.params]\ngian = 1\n") ==
        Lines{"s.toml:4:1: unknown parameter \"gian\" of react; did you mean \"gain\"?"});
  CHECK(errors_of("[cc]\nalgorithm = \"react\"\n[cc.params]\nperiod = -3\n") ==
        Lines{"s.toml:4:10: cc.params.period = -3: out of range, allowed is [1 .. 1000] us"});
  CHECK(errors_of("[cc]\nalgorithm = \"react\"\n[cc.params]\nperiod = \"2s\"\n") ==
        Lines{"s.toml:4:10: cc.params.period = \"2s\": out of range, allowed is [1 .. 1000] us"});
  CHECK(
      errors_of(
          "[cc]\nalgorithm = \"react\"\n[cc.params]\non = 0.5\nstages = 2.5\ngain = \"high\"\n") ==
      Lines{"s.toml:4:6: cc.params.on = 0.5: expected 0, 1, true or false",
            "s.toml:5:10: cc.params.stages = 2.5: expected an integer",
            "s.toml:6:8: cc.params.gain = \"high\": expected a number"});
  CHECK(errors_of("[cc]\nalgoritm = \"react\"\n").size() == 1);
  CHECK(errors_of("cc = 1\n").size() == 1);
}

TEST_CASE("all errors of a file are reported, in its order", "[config]") {
  const Lines errors = errors_of(R"(name = 3
[fabric]
hosts = 0
rat = "1Gb/s"
delay = "1"
[workload]
kind = "incst"
[transport]
retry_count = 8
)");
  REQUIRE(errors.size() == 6);
  const Lines starts{"s.toml:1:8: ", "s.toml:3:9: ", "s.toml:4:1: ",
                     "s.toml:5:9: ", "s.toml:7:8: ", "s.toml:9:15: "};
  for (std::size_t i = 0; i < errors.size(); ++i) {
    INFO(errors[i]);
    CHECK(errors[i].starts_with(starts[i]));
  }
}

TEST_CASE("a syntax error, a foreign schema and an experiment are refused", "[config]") {
  const Lines syntax = errors_of("[fabric\nhosts = 3\n");
  REQUIRE(syntax.size() == 1);
  CHECK(syntax[0].starts_with("s.toml:1:8: not valid TOML: "));
  for (const char* header : {"[[[1]]]", "[[=", " [ =]", "[", "[[\x01\n]]", "[]", "[[]]"}) {
    INFO(header);
    CHECK(errors_of(std::string("seed = 1\n") + header + "\n").size() == 1);
  }
  CHECK(errors_of("[fabric]\nrate = \xC3\xA9\n") ==
        Lines{"s.toml:2:8: not valid TOML: a character beyond ASCII outside quotes"});
  CHECK(errors_of("# \xC3\xA9\n[fabric]\ndelay = \"2\xC2\xB5s\" # \xC3\xA9\nsubnet = \n").size() ==
        1);
  CHECK(errors_of("# \xC3\xA9\n[fabric]\ndelay = \"2\xC2\xB5s\" # \xC3\xA9\n") == Lines{});
  CHECK(errors_of("[transport]\nforeign_hosts = [\n  1,\n  2\n]\n") == Lines{});
  CHECK(errors_of("\xEF\xBB\xBF[fabric]\nhosts = 32\n") == Lines{});
  CHECK(errors_of("name = \"\"\"\n[[=\n\"\"\"\n").size() == 1);  // a text: no valid name
  CHECK(errors_of("[[=]]\n") == Lines{"s.toml:1:3: not valid TOML: expected the name of a table"});
  CHECK(errors_of("schema = 2\nwhatever = 3\n") ==
        Lines{"s.toml:1:10: schema = 2: this program reads schema 1"});
  CHECK(errors_of("schema = \"1\"\n").size() == 1);
  CHECK(errors_of("[[arm]]\nname = \"a\"\n") ==
        Lines{"s.toml:1:3: arm belongs to an experiment file, for `paceline ab`"});
}

std::string repeated(const std::string& part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

TEST_CASE("nesting is limited before a parser meets it", "[config]") {
  // Deep enough to end the process where a destructor recurses; 120 kB pass the daemon's limit.
  constexpr int kParts = 100'000;
  const std::string key = "a" + repeated(".a", kParts);
  const std::string limit = "nested deeper than 32 levels";
  for (const std::string& text :
       {key + " = 1\n", "[" + key + "]\n", "[[" + key + "]]\n",
        "'a'" + repeated(" . \"a\"", kParts) + " = 1\n", "x = { " + key + " = 1 }\n",
        "x = " + repeated("[", kParts) + repeated("]", kParts) + "\n",
        "x = " + repeated("{a=", kParts) + "1" + repeated("}", kParts) + "\n",
        "x = " + repeated("{a.a.a.a=[", kParts) + "1" + repeated("]}", kParts) + "\n"}) {
    const Lines errors = errors_of(text);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].ends_with(limit));
  }
  CHECK(errors_of("x.y" + repeated(".a", 31) + " = 1\n") ==
        Lines{"s.toml:1:64: nested deeper than 32 levels"});
  for (const std::string& text :
       {key + "=1", "fabric.hosts={" + key + "=1}", "seed=" + repeated("[", kParts)}) {
    CHECK(errors_of("", {text}).size() == 1);
  }
  CHECK_THAT(errors_of("", {key + "=1"})[0], Catch::Matchers::EndsWith(limit));
  // What a document may hold.
  CHECK(errors_of("name = \"a" + repeated(".a", 31) + "\" # " + key + "\n").size() == 1);
  CHECK(errors_of("# " + key + "\nseed = 1 # " + repeated("[", kParts) + "\n") == Lines{});
}

TEST_CASE("a table of the wrong kind is one error", "[config]") {
  CHECK(errors_of("[fabric]\nhosts = 4\n[[workload]]\nkind = \"incast\"\n[[workload]]\n") ==
        Lines{"s.toml:3:1: workload = an array: expected a table, [workload]"});
  CHECK(errors_of("[workload]\nkind = \"permutation\"\n[[fabric]]\nhosts = 4\n") ==
        Lines{"s.toml:3:1: fabric = an array: expected a table, [fabric]"});
}

TEST_CASE("overrides are values of the same keys", "[config]") {
  const auto s = read("[fabric]\nhosts = 8\n[workload]\nfan_in = 4\n[cc]\nalgorithm = \"react\"\n",
                      {"fabric.ecn.kmin=200kB", "fabric.hosts=16", "cc.params.gain=0.01", "seed=9",
                       "cc.algorithm=pace", "workload.start_jitter=2 us", "name=\"other\""});
  REQUIRE(s.errors == Lines{});
  CHECK(s.value.fabric.ecn.kmin_bytes == 200'000);
  CHECK(s.value.fabric.hosts == 16);
  CHECK(s.value.seed == 9);
  CHECK(s.value.cc.algorithm == "pace");
  REQUIRE(s.value.cc.params.size() == 1);
  CHECK(s.value.cc.params[0].value == 0.01);
  CHECK(s.value.workload.start_jitter == picos_from_micros(2));
  CHECK(s.value.name == "other");
}

TEST_CASE("errors of overrides quote the override", "[config]") {
  CHECK(errors_of("", {"fabric.ecn.kmim=200kB"}) ==
        Lines{"--set fabric.ecn.kmim=200kB: unknown key \"kmim\" in [fabric.ecn]; did you mean "
              "\"kmin\"?"});
  CHECK(errors_of("", {"fabric.hosts=-3"}) ==
        Lines{"--set fabric.hosts=-3: fabric.hosts = -3: out of range, allowed is [2 .. 524288]"});
  CHECK(errors_of("", {"hosts"}) ==
        Lines{"--set hosts: expected key=value, such as fabric.ecn.kmin=200kB"});
  CHECK(errors_of("", {"fabric=3"}) ==
        Lines{"--set fabric=3: fabric = 3: expected a table, [fabric]"});
  CHECK(errors_of("[fabric]\nhosts=30\n", {"fabric=3"}).at(0) ==
        "--set fabric=3: \"fabric\" is a table; name one of its keys");
  CHECK(errors_of("seed = 1\n", {"seed.x=3"}) ==
        Lines{"--set seed.x=3: \"seed\" is a value, not a table"});
  CHECK(errors_of("", {"fabric..hosts=3"}).size() == 1);
  // Several tables in a value, or a second line, are a text like any other.
  CHECK(errors_of("", {"fabric.hosts=3\nseed = 4"}).size() == 1);
}

TEST_CASE("with the generator replaced, the file's keys for the old one are no mistake",
          "[config]") {
  const std::string file = "[workload]\nkind = \"incast\"\nfan_in = 4\n";
  CHECK(errors_of(file, {"workload.kind=flows", "workload.flows_file=f"}) == Lines{});
  CHECK(errors_of(file, {"workload.skew=1"}) ==
        Lines{"--set workload.skew=1: workload.skew does nothing with workload.kind = \"incast\"; "
              "it is for "
              "all_to_all"});
}

TEST_CASE("file names are relative to the file that names them", "[config]") {
  const auto s =
      read("[workload]\nflows_file = \"hpcc/x.flows\"\n[fabric]\ntopology_file = \"../t\"\n");
  REQUIRE(s.errors == Lines{});
  CHECK(s.value.workload.flows_file == "folder/hpcc/x.flows");
  CHECK(s.value.workload.kind == "flows");
  CHECK(s.value.fabric.topology_file == "t");
  CHECK(s.value.fabric.topology == "file");
  const auto absolute =
      read("[workload]\nflows_file = \"/x.flows\"\n", {"fabric.topology_file=y/t"});
  CHECK(absolute.value.workload.flows_file == "/x.flows");
  CHECK(absolute.value.fabric.topology_file == "y/t");
}

TEST_CASE("unreadable files say why", "[config]") {
  const ReaderOptions options{test_algorithms(), {}};
  CHECK(read_scenario_file("/no/such.toml", options).errors ==
        Lines{"/no/such.toml: cannot be opened: No such file or directory"});
  CHECK(read_experiment_file("/tmp", options).errors ==
        Lines{"/tmp: cannot be read: it is a folder"});
  CHECK(read_scenario_file("/dev/zero", options).errors.size() == 1);
}

TEST_CASE("every shipped scenario and experiment reads without an error", "[config]") {
  const ReaderOptions options{cc::algorithms(), {}};
  const std::filesystem::path configs = std::filesystem::path(PACELINE_SOURCE_DIR) / "configs";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(configs / "scenarios")) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    CHECK(read_scenario_file(entry.path().string(), options).errors == Lines{});
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(configs / "experiments")) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    // Plans of live experiments have a reader of their own.
    if (entry.path().filename().string().starts_with("live-")) continue;
    CHECK(read_experiment_file(entry.path().string(), options).errors == Lines{});
  }
  CHECK(files >= 7);
}

TEST_CASE("flow control: either key says it, and not both", "[config]") {
  const auto fabric = [](const std::string& keys) {
    const auto r = read("[fabric]\n" + keys + "[workload]\nfan_in = 3\n");
    CHECK(r.errors == Lines{});
    return r.value.fabric;
  };
  CHECK(fabric("").flow_control == "pfc");
  CHECK(fabric("pfc = { enabled = false }\n").flow_control == "none");
  CHECK(fabric("pfc = { enabled = true }\n").flow_control == "pfc");
  CHECK(fabric("flow_control = \"none\"\n").pfc.enabled == false);
  CHECK(fabric("flow_control = \"pfc\"\n").pfc.enabled);
  const FabricConfig credit =
      fabric("flow_control = \"credit\"\ncredit = { buffer = \"64kB\", update = \"2kB\" }\n");
  CHECK(credit.pfc.enabled == false);
  CHECK(credit.credit.buffer_bytes == 64'000);
  CHECK(credit.credit.update_bytes == 2'000);
  CHECK(fabric("flow_control = \"credit\"\npfc = { enabled = false }\n").flow_control == "credit");

  CHECK(
      errors_of("[fabric]\nflow_control = \"credit\"\npfc = { enabled = true }\n") ==
      Lines{"s.toml:2:16: fabric.flow_control = \"credit\" contradicts fabric.pfc.enabled = true; "
            "give one of them"});
  CHECK(errors_of("[fabric]\nflow_control = \"pfc\"\npfc = { enabled = false }\n") ==
        Lines{"s.toml:2:16: fabric.flow_control = \"pfc\" contradicts fabric.pfc.enabled = false; "
              "give one of them"});
  CHECK(errors_of("[fabric]\nflow_control = \"credits\"\n").size() == 1);
  CHECK(
      errors_of("[fabric]\ncredit = { buffer = \"64kB\" }\n") ==
      Lines{"s.toml:2:21: fabric.credit.buffer does nothing with fabric.flow_control = \"pfc\"; it "
            "is for \"credit\""});
  CHECK(
      errors_of("[fabric]\nflow_control = \"credit\"\npfc = { headroom = \"64kB\" }\n") ==
      Lines{"s.toml:3:20: fabric.pfc.headroom does nothing with fabric.flow_control = \"credit\"; "
            "it is for \"pfc\""});
  CHECK(errors_of("[fabric]\nflow_control = \"credit\"\nduplicate = 0.1\n").size() == 1);
}

TEST_CASE("regular topologies: counts, rates and what contradicts", "[config]") {
  const auto tree = read("[fabric]\nk = 16\n[workload]\nkind = \"permutation\"\n");
  REQUIRE(tree.errors == Lines{});
  CHECK(tree.value.fabric.topology == "fat_tree");
  CHECK(tree.value.fabric.hosts == 1024);
  CHECK(tree.value.fabric.switches == 16 * 16 + 64);

  const auto leaves = read(R"(
[fabric]
topology = "leaf_spine"
leaves = 8
spines = 4
hosts_per_leaf = 16
oversubscription = 2
uplink_delay = "3us"
)");
  REQUIRE(leaves.errors == Lines{});
  CHECK(leaves.value.fabric.hosts == 128);
  CHECK(leaves.value.fabric.switches == 12);
  CHECK(uplink_rate(leaves.value.fabric) == rate_from_gbps(200));  // 16 x 100 / (4 x 2)

  const auto pods = read(R"(
[fabric]
topology = "fat_tree"
pods = 2
leaves = 2
spines = 2
cores = 4
hosts_per_leaf = 4
uplink_rate = "200Gb/s"
oversubscription = 4
[workload]
fan_in = 15
)");
  REQUIRE(pods.errors == Lines{});
  CHECK(uplink_rate(pods.value.fabric) == rate_from_gbps(200));
  CHECK(core_rate(pods.value.fabric) == rate_from_gbps(50));  // 8 x 100 over 4 links, by 4

  CHECK(read("[fabric]\ntopology = \"dumbbell\"\nhosts = 8\n[workload]\nfan_in = 7\n")
            .value.fabric.switches == 2);

  CHECK(errors_of("[fabric]\nk = 5\n") ==
        Lines{"s.toml:2:5: fabric.k = 5: expected an even number of ports"});
  CHECK(errors_of("[fabric]\nk = 8\nspines = 2\n") ==
        Lines{"s.toml:3:10: fabric.spines contradicts fabric.k, which says it all; give one of "
              "them"});
  CHECK(errors_of("[fabric]\ntopology = \"fat_tree\"\nspines = 3\ncores = 4\n") ==
        Lines{"s.toml:4:9: fabric.cores = 4: expected a multiple of fabric.spines = 3"});
  CHECK(errors_of("[fabric]\ntopology = \"dumbbell\"\nhosts = 7\n[workload]\nfan_in = 1\n") ==
        Lines{"s.toml:3:9: fabric.hosts = 7: a dumbbell has an even number, half on either side"});
  CHECK(errors_of("[fabric]\nspines = 2\n") ==
        Lines{"s.toml:2:10: fabric.spines does nothing with fabric.topology = \"star\"; it is for "
              "leaf_spine fat_tree rail"});
  CHECK(errors_of("[fabric]\ntopology = \"leaf_spine\"\nhosts = 4\n") ==
        Lines{"s.toml:3:9: fabric.hosts does nothing with fabric.topology = \"leaf_spine\"; it is "
              "for star dumbbell"});
  CHECK(errors_of("[fabric]\ntopology = \"leaf_spine\"\nuplink_rate = \"50Gb/s\"\n"
                  "oversubscription = 2\n") ==
        Lines{"s.toml:4:20: fabric.oversubscription and fabric.uplink_rate say the same; give one "
              "of them"});
  CHECK(errors_of("[fabric]\ntopology = \"leaf_spine\"\nleaves = 1024\nhosts_per_leaf = 1024\n")
            .front() == "s.toml:4:18: a leaf_spine of 1048576 hosts: allowed is 2 .. 524288");
  // From the command line another topology may take over, and the file's keys rest.
  CHECK(errors_of("[fabric]\nhosts = 32\n", {"fabric.k=8"}).size() == 1);
  CHECK(errors_of("[fabric]\nhosts = 32\n", {"fabric.k=8", "fabric.topology=fat_tree"}).empty());
}

TEST_CASE("events: what happens to links, and what does not exist", "[config]") {
  const auto s = read(R"(
[fabric]
topology = "leaf_spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
links_per_pair = 2
class_weights = [1, 2, 0, 4, 0, 0, 0, 0]
load_balance = "spray"
[[event]]
at = "1ms"
link = "leaf1-spine0#1"
action = "down"
[[event]]
at = "2ms"
link = "spine0-leaf1#1"
action = "up"
[[event]]
at = "0ns"
link = "host3"
action = "loss"
probability = 0.01
[[event]]
at = "3us"
link = "host4-leaf1"
action = "rate"
rate = "25Gb/s"
[workload]
fan_in = 7
)");
  REQUIRE(s.errors == Lines{});
  REQUIRE(s.value.events.size() == 4);
  CHECK(s.value.events[0].links == std::vector<std::uint32_t>{8 + (1 * 2 + 0) * 2 + 1});
  CHECK(s.value.events[1].links == s.value.events[0].links);
  CHECK(s.value.events[2].links == std::vector<std::uint32_t>{3});
  CHECK(s.value.events[2].probability == 0.01);
  CHECK(s.value.events[3].links == std::vector<std::uint32_t>{4});
  CHECK(s.value.events[3].rate == rate_from_gbps(25));
  CHECK(s.value.fabric.load_balance == "spray");

  const auto error = [](const std::string& event) {
    const Lines all = errors_of("fabric.k = 4\nworkload.fan_in = 3\n[[event]]\n" + event);
    return all.size() == 1 ? all[0] : std::to_string(all.size()) + " errors";
  };
  const std::string down = "at = \"1ms\"\naction = \"down\"\n";
  CHECK(error(down + "link = \"leaf8-spine0\"\n") ==
        "s.toml:6:8: event.link = \"leaf8-spine0\": no node \"leaf8\"; allowed is leaf0 .. leaf7");
  CHECK(error(down + "link = \"leaf0-spine2\"\n") ==
        "s.toml:6:8: event.link = \"leaf0-spine2\": there is no link \"leaf0-spine2\" in this "
        "topology");
  CHECK(error(down + "link = \"leaf0-spine0#1\"\n") ==
        "s.toml:6:8: event.link = \"leaf0-spine0#1\": there are 1 links between these nodes, "
        "numbered from 0");
  CHECK(error(down + "link = \"tor0-spine0\"\n") ==
        "s.toml:6:8: event.link = \"tor0-spine0\": \"tor0\" is not a node; expected host, leaf, "
        "spine or core and a number");
  CHECK(error(down) == "s.toml:3:1: an [[event]] needs \"link\"");
  CHECK(error(down + "link = \"spine1-core2\"\nrate = \"1Gb/s\"\n") ==
        "s.toml:7:8: event.rate does nothing with event.action = \"down\"; it is for rate");
  CHECK(error("at = \"1ms\"\naction = \"loss\"\nlink = \"host0\"\n") ==
        "s.toml:3:1: event.action = \"loss\" needs event.probability");
  CHECK(error("at = \"1ms\"\naction = \"dwon\"\nlink = \"host0\"\n") ==
        "s.toml:5:10: event.action = \"dwon\": did you mean \"down\"? allowed is \"down\", \"up\", "
        "\"rate\", \"delay\", \"loss\", \"corrupt\", \"duplicate\" or \"reorder\"");
  CHECK(error(down + "link = \"host0\"\nwhen = 3\n")
            .starts_with("s.toml:7:1: unknown key \"when\" in [event]; "));
  CHECK(errors_of("event = 3\n") ==
        Lines{"s.toml:1:9: event: expected an array of tables, [[event]]"});
  CHECK(errors_of("[fabric]\nclass_weights = [1, 2]\n") ==
        Lines{"s.toml:2:17: fabric.class_weights has 2 entries; expected 8, for classes 0 to 7"});
  CHECK(errors_of("[fabric]\nclass_weights = [1, 2, 0, 0, 0, 0, 0, 1]\n").size() == 1);
}

}  // namespace
}  // namespace paceline::config
