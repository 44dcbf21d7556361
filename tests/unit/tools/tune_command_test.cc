// `paceline tune`: the record, its independence of --jobs, bad input and interruption.

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

const std::string kTuned = R"(schema = 1
name = "tiny"
seed = 3
[[arm]]
name = "base"
algorithm = "dcqcn"
profile = "paper"
[[arm]]
name = "cadence"
algorithm = "cadence"
[common.fabric]
hosts = 9
[[scenario]]
name = "incast"
workload = { kind = "incast", fan_in = 8, message_bytes = "1MB", start_jitter = "1us" }
[[scenario]]
name = "moe"
workload = { kind = "all_to_all", message_bytes = "50kB", skew = 1.0, start_jitter = "5us" }
)";

Strings search(const std::string& jobs, const std::string& out) {
  return {"tune",          "tiny.toml",
          "--scenario",    "incast",
          "--param",       "additive_increase_mbps",
          "--param",       "alpha_gain=0.001:0.1",
          "--limit",       "queue_max_bytes=6e6",
          "--evaluations", "30",
          "--repetitions", "1",
          "--validation",  "2",
          "--finalists",   "3",
          "--jobs",        jobs,
          "--out",         out};
}

TEST_CASE("tune: finds better than it began with, whatever the jobs", "[cli][threads]") {
  const Folder folder;
  folder.write("tiny.toml", kTuned);
  const Outcome one = paceline_command(folder, search("1", "1.json"));
  CAPTURE(one.err, one.out);
  REQUIRE(one.code == 0);
  REQUIRE(paceline_command(folder, search("3", "3.json")).code == 0);
  CHECK(folder.read("1.json") == folder.read("3.json"));
  CHECK_THAT(one.out, Contains("params.additive_increase_mbps = ") && Contains("content hash"));
  const auto json = nlohmann::json::parse(folder.read("1.json"));
  REQUIRE(json["candidates"].size() == 30);
  const auto& best = json["candidates"][json["winner"].get<std::size_t>()];
  CHECK(best["validation"]["within_limits"] == true);
  CHECK(best["validation"]["objective"] > json["candidates"][0]["validation"]["objective"]);
  CHECK(best["validation"]["queue_max_bytes"] <= 6e6);
}

TEST_CASE("tune: limits that nothing keeps are said so", "[cli]") {
  const Folder folder;
  folder.write("tiny.toml", kTuned);
  const Outcome outcome = paceline_command(
      folder, {"tune", "tiny.toml", "--scenario", "moe", "--param", "alpha_gain", "--limit",
               "queue_max_bytes=1", "--evaluations", "3", "--repetitions", "1"});
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("No candidate kept the limits") && Contains("at most 1"));
}

TEST_CASE("tune: everything wrong with the command is said at once", "[cli]") {
  const Folder folder;
  folder.write("tiny.toml", kTuned);
  const Outcome outcome =
      paceline_command(folder, {"tune", "tiny.toml", "--scenario", "outcast", "--param",
                                "alpha_gian", "--param", "increase_timer_us=9:1", "--param", "x=1",
                                "--limit", "drops", "--out", "no/x.json"});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Contains("--scenario outcast") && Contains("\"incast\""));
  CHECK_THAT(outcome.err, Contains("'alpha_gian'") && Contains("'alpha_gain'"));
  CHECK_THAT(outcome.err, Contains("increase_timer_us") && Contains("9 to 1"));
  CHECK_THAT(outcome.err, Contains("--param x=1"));
  CHECK_THAT(outcome.err, Contains("--limit drops"));
  CHECK_THAT(outcome.err, Contains("no/x.json"));
  CHECK(folder.list() == Strings{"tiny.toml"});
  const Outcome arm =
      paceline_command(folder, {"tune", "tiny.toml", "--arm", "bass", "--param", "alpha_gain"});
  CHECK(arm.code == 2);
  CHECK_THAT(arm.err, Contains("--arm bass") && Contains("\"base\""));
}

TEST_CASE("tune: interrupted, it keeps what was judged", "[cli]") {
  const Folder folder;
  folder.write("tiny.toml", kTuned);
  Command command(folder, {"tune", "tiny.toml", "--scenario", "incast", "--param", "alpha_gain",
                           "--evaluations", "100000", "--out", "r.json"});
  // The first progress line comes after the first candidates are judged; the last is far.
  while (command.running() && command.err().empty()) ::usleep(5000);
  command.signal(SIGINT);
  const Outcome outcome = command.wait();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 130);
  CHECK_THAT(outcome.err, Contains("kept"));
  const auto json = nlohmann::json::parse(folder.read("r.json"));
  CHECK(json["candidates"].size() >= 4);
  CHECK(json["candidates"].size() < 100'000);
  CHECK_FALSE(json.contains("winner"));  // nothing was validated
}

}  // namespace
}  // namespace paceline::tools
