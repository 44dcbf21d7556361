// `paceline ab`: the results file, its independence of the machine, and interruption.

#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "control/experiment/results/results_file.h"
#include "tests/unit/tools/command.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
using Strings = std::vector<std::string>;

const std::string kExperiment = R"(schema = 1
name = "tiny"
seed = 3
repetitions = 3
[[arm]]
name = "dcqcn"
algorithm = "dcqcn"
profile = "paper"
[[arm]]
name = "cadence"
algorithm = "cadence"
[common.fabric]
hosts = 4
[[scenario]]
name = "incast"
workload = { kind = "incast", fan_in = 3, message_bytes = "200kB", start_jitter = "1us" }
[[scenario]]
name = "moe"
workload = { kind = "all_to_all", message_bytes = "50kB", skew = 1.0, start_jitter = "5us" }
)";

TEST_CASE("ab: any number of jobs writes the same bytes", "[cli][threads]") {
  const Folder folder;
  folder.write("tiny.toml", kExperiment);
  const Outcome one =
      paceline_command(folder, {"ab", "tiny.toml", "--jobs", "1", "--out", "1.json"});
  CAPTURE(one.err);
  REQUIRE(one.code == 0);
  for (const std::string jobs : {"2", "5"}) {
    const std::string file = jobs + ".json";
    REQUIRE(paceline_command(folder, {"ab", "tiny.toml", "--jobs", jobs, "--out", file}).code == 0);
    CHECK(folder.read(file) == folder.read("1.json"));
  }
  CHECK_THAT(one.out, Contains("incast") && Contains("moe") && Contains("content hash"));
  // The summary is part of the table, and said once.
  const std::size_t summary = one.out.find("\n   incast, ");
  REQUIRE(summary != std::string::npos);
  const std::string line =
      one.out.substr(summary + 4, one.out.find('\n', summary + 1) - summary - 4);
  CHECK(one.out.find(line, summary + 5) == std::string::npos);
}

TEST_CASE("ab: the results file holds every run of the design", "[cli]") {
  const Folder folder;
  folder.write("tiny.toml", kExperiment);
  const Outcome outcome = paceline_command(folder, {"ab", "tiny.toml", "-q", "--check"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out == "");
  CHECK(outcome.err == "");
  CHECK(folder.list() == Strings{"tiny.report.html", "tiny.results.json", "tiny.toml"});
  const auto results = experiment::read_results_file(folder.path("tiny.results.json"));
  CHECK(results.configuration == kExperiment);
  REQUIRE(results.runs.size() == 2 * 2 * 3);
  for (std::size_t i = 0; i < results.runs.size(); ++i) {
    const experiment::RunResult& run = results.runs[i];
    CHECK(run.status == experiment::RunStatus::ok);
    CHECK(run.messages_completed == run.messages_started);
    // By scenario, arm, repetition; both arms of a repetition replay one seed.
    CHECK(run.scenario == (i < 6 ? "incast" : "moe"));
    CHECK(run.arm == (i / 3 % 2 == 0 ? "dcqcn" : "cadence"));
    CHECK(run.repetition == i % 3);
    CHECK(run.seed == results.runs[i % 3].seed);
  }
  CHECK(results.runs[0].seed != results.runs[1].seed);
  CHECK(results.runs[0].trace_hash != results.runs[3].trace_hash);
}

TEST_CASE("ab: --set and --seed change the experiment and are recorded", "[cli]") {
  const Folder folder;
  folder.write("tiny.toml", kExperiment);
  REQUIRE(paceline_command(folder, {"ab", "tiny.toml", "-q", "--out", "a.json", "--set",
                                    "repetitions=2", "--set", "arm.cadence.algorithm=fixed",
                                    "--set", "scenario.moe.workload.skew=2", "--seed", "9"})
              .code == 0);
  const auto a = experiment::read_results_file(folder.path("a.json"));
  CHECK(a.runs.size() == 2 * 2 * 2);
  CHECK(a.plan.seed == 9);
  CHECK_THAT(a.configuration, Contains("# --set repetitions=2\n") && Contains("# --set seed=9\n"));
  REQUIRE(paceline_command(folder, {"ab", "tiny.toml", "-q", "--out", "b.json"}).code == 0);
  const auto b = experiment::read_results_file(folder.path("b.json"));
  CHECK(a.runs[0].seed != b.runs[0].seed);
}

TEST_CASE("ab: a run beyond max_hops fails the experiment", "[cli]") {
  const Folder folder;
  folder.write("tiny.toml", kExperiment);
  const Outcome outcome =
      paceline_command(folder, {"ab", "tiny.toml", "-q", "--set", "max_hops=1000", "--set",
                                "scenario.incast.workload.message_bytes=50MB", "--out", "r.json"});
  CAPTURE(outcome.err);
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.err, Contains("incast") && Contains("max_hops = 1000"));
}

TEST_CASE("ab: an interrupt keeps the repetitions that are finished", "[cli]") {
  const Folder folder;
  folder.write("tiny.toml", kExperiment);
  // The first scenario's runs take milliseconds, the second's for ever: whatever the machine, the
  // signal comes after some runs and before the last. Only how long to wait for the first is tried.
  Outcome outcome;
  for (useconds_t wait = 200'000; !folder.has("r.json"); wait *= 2) {
    REQUIRE(wait < 30'000'000);
    Command command(folder, {"ab", "tiny.toml", "--jobs", "1", "--out", "r.json", "--set",
                             "scenario.moe.workload.message_bytes=1GB"});
    ::usleep(wait);
    command.signal(SIGINT);
    outcome = command.wait();
    CAPTURE(outcome.out, outcome.err);
    REQUIRE(outcome.code == 130);
  }
  CAPTURE(outcome.out, outcome.err);
  CHECK_THAT(outcome.err, Contains("paceline: interrupted: ") && Contains("kept"));
  CHECK(folder.list() == Strings{"r.json", "r.report.html", "tiny.toml"});
  const auto results = experiment::read_results_file(folder.path("r.json"));
  REQUIRE(results.runs.size() >= 1);
  REQUIRE(results.runs.size() <= 2);
  CHECK(results.runs[0].arm == "dcqcn");
  for (const experiment::RunResult& run : results.runs) {
    CHECK(run.scenario == "incast");
    CHECK(run.repetition == 0);
    CHECK(run.status == experiment::RunStatus::ok);
  }
}

TEST_CASE("ab: interrupted before the first run is over, nothing is written", "[cli]") {
  const Folder folder;
  folder.write("tiny.toml", kExperiment);
  Command command(folder, {"ab", "tiny.toml", "--jobs", "2", "--out", "r.json", "--set",
                           "scenario.incast.workload.message_bytes=1GB", "--set",
                           "scenario.moe.workload.message_bytes=1GB"});
  while (command.running() && command.err().empty()) ::usleep(5000);
  command.signal(SIGTERM);
  const Outcome outcome = command.wait();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 130);
  CHECK_THAT(outcome.err, Contains("nothing written"));
  CHECK(folder.list() == Strings{"tiny.toml"});
}

}  // namespace
}  // namespace paceline::tools
