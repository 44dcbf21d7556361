// `paceline tuner`: a search makes a preset that a simulation reads; bad input; interruption.

#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/tools/command.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
using Strings = std::vector<std::string>;

const std::string kWaves = R"(schema = 1
name = "waves"
seed = 3
[fabric]
hosts = 5
rate = "25Gb/s"
ecn = { enabled = true, kmin = "50kB", kmax = "200kB", pmax = 0.2 }
[cc]
algorithm = "dcqcn"
profile = "paper"
[workload]
kind = "incast"
fan_in = 4
message_bytes = "100kB"
start_jitter = "5us"
)";

Strings searched(const std::string& jobs, const std::string& out) {
  return {"tuner", "search",       "waves.toml", "--wave",        "200us", "--block",
          "10",    "--blocks",     "2",          "--evaluations", "30",    "--repetitions",
          "1",     "--validation", "2",          "--name",        "waves", "--jobs",
          jobs,    "--out",        out};
}

TEST_CASE("tuner: a search whatever its jobs makes a preset, and a simulation reads it",
          "[cli][threads]") {
  const Folder folder;
  folder.write("waves.toml", kWaves);
  const Outcome one = paceline_command(folder, searched("1", "1.toml"));
  CAPTURE(one.err, one.out);
  REQUIRE(one.code == 0);
  REQUIRE(paceline_command(folder, searched("3", "3.toml")).code == 0);
  CHECK(folder.read("1.toml") == folder.read("3.toml"));
  const Strings simulate{"tuner", "simulate",  "waves.toml", "--wave",        "200us", "--block",
                         "10",    "--pairs",   "4",          "--repetitions", "2",     "--blocks",
                         "2",     "--presets", "1.toml",     "--json"};
  const Outcome first = paceline_command(folder, simulate);
  CAPTURE(first.err);
  REQUIRE(first.code == 0);
  const auto json = nlohmann::json::parse(first.out);
  CHECK(json.at("pairs") == 4);
  CHECK(json.at("table").size() == 3);
  CHECK(json.at("table")[0].at("name") == "default");
  CHECK(json.at("table")[0].at("gain").at("mean") == 0);
  CHECK(json.at("journal")[0].at("event") == "learned");
  CHECK(paceline_command(folder, simulate).out == first.out);
}

TEST_CASE("tuner: bad input says what is allowed", "[cli]") {
  const Folder folder;
  folder.write("waves.toml", kWaves);
  folder.write("presets.toml", "schema = 1\nalgorithm = \"swift\"\nemulator = \"0\"\n");
  const auto refused = [&](Strings arguments, const std::string& words) {
    const Outcome outcome = paceline_command(folder, arguments);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(words));
    CHECK(outcome.out.empty());
  };
  refused({"tuner", "simulate", "waves.toml"}, "--wave TIME says how often");
  refused({"tuner", "simulate", "waves.toml", "--wave", "soon"}, "--wave soon");
  refused({"tuner", "simulate", "waves.toml", "--wave", "1us"}, "allowed is 10us or more");
  refused({"tuner", "simulate", "waves.toml", "--wave", "1ms", "--presets", "presets.toml"},
          "presets.toml:1:1: at least one [[preset]]");
  refused({"tuner", "simulate", "waves.toml", "--wave", "1ms", "--mode", "off"}, "--mode");
  refused({"tuner", "search", "waves.toml", "--wave", "1ms"}, "--name");
  refused({"tuner", "search", "waves.toml", "--wave", "1ms", "--name", "x", "--set",
           "workload.kind=open_loop"},
          "open_loop traffic does not end");
}

TEST_CASE("tuner: Ctrl-C prints how far it came", "[cli]") {
  const Folder folder;
  folder.write("waves.toml", kWaves);
  Command command(folder,
                  {"tuner", "simulate", "waves.toml", "--wave", "200us", "--pairs", "2000"});
  for (int i = 0; i < 500 && command.err().find("tuning") == std::string::npos; ++i) {
    ::usleep(20'000);
  }
  command.signal(SIGINT);
  const Outcome outcome = command.wait();
  CHECK(outcome.code == 130);
  CHECK_THAT(outcome.out, Contains("learned"));
  CHECK_THAT(outcome.err, Contains("interrupted"));
}

}  // namespace
}  // namespace paceline::tools
