// `paceline report`, the page that `paceline ab` writes, and one run of an experiment.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "control/experiment/results/results_file.h"
#include "tests/unit/tools/command.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
using Strings = std::vector<std::string>;

const std::string kSmallExperiment = R"(schema = 1
name = "small"
seed = 3
repetitions = 2
[[arm]]
name = "dcqcn"
algorithm = "dcqcn"
[[arm]]
name = "cadence"
algorithm = "cadence"
[common.fabric]
hosts = 4
[[scenario]]
name = "incast"
workload = { kind = "incast", fan_in = 3, message_bytes = "100kB", start_jitter = "1us" }
)";

struct Made {
  Folder folder;
  std::string hash;  // as ab printed it

  explicit Made(const Strings& more = {}) {
    folder.write("small.toml", kSmallExperiment);
    Strings words = {"ab", "small.toml", "--jobs", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = paceline_command(folder, words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    const std::size_t at = outcome.out.find("content hash ");
    REQUIRE(at != std::string::npos);
    hash = outcome.out.substr(at + 13, 16);
  }
};

TEST_CASE("report: ab writes the page beside the results, report writes the same one", "[cli]") {
  const Made made;
  CHECK(made.folder.list() == Strings{"small.report.html", "small.results.json", "small.toml"});
  const std::string page = made.folder.read("small.report.html");
  CHECK_THAT(page, Contains(made.hash));
  CHECK_THAT(page, Contains("paceline ab small.toml --out small.results.json"));
  const Outcome outcome =
      paceline_command(made.folder, {"report", "small.results.json", "-o", "again.html"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("again.html"));
  CHECK(made.folder.read("again.html") == page);
  CHECK(paceline_command(made.folder, {"report", "small.results.json", "-q"}).out == "");
}

TEST_CASE("report: what ab is told about the page", "[cli]") {
  CHECK(Made({"--no-report"}).folder.list() == Strings{"small.results.json", "small.toml"});
  const Made elsewhere({"--out", "r.json", "--report", "page.html"});
  CHECK(elsewhere.folder.list() == Strings{"page.html", "r.json", "small.toml"});
  CHECK(Made({"--out", "r.json"}).folder.has("r.report.html"));

  // Without detail the results are those bytes that the content hash is of.
  const Made full;
  const Made without({"--no-detail"});
  CHECK(without.hash == full.hash);
  const std::string text = full.folder.read("small.results.json");
  const std::size_t at = text.find(",\n  \"detail\"");
  REQUIRE(at != std::string::npos);
  CHECK(without.folder.read("small.results.json") == text.substr(0, at) + "\n}\n");
  const Outcome outcome = paceline_command(without.folder, {"report", "small.results.json"});
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("no detail"));
}

TEST_CASE("report: every bad file is named with what is wrong where", "[cli]") {
  const Made made;
  const std::string good = made.folder.read("small.results.json");
  const auto error = [&](const std::string& file) {
    const Outcome outcome = paceline_command(made.folder, {"report", file, "-o", "x.html"});
    CHECK(outcome.code == 2);
    CHECK(outcome.out == "");
    CHECK_FALSE(made.folder.has("x.html"));
    return outcome.err;
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return error(made.folder.write("bad.json", text.replace(at, from.size(), to)));
  };
  CHECK_THAT(error("none.json"), Contains("none.json: cannot be opened: No such file"));
  CHECK_THAT(error("."), Contains("cannot be read"));
  CHECK_THAT(error("small.toml"), Contains("small.toml:1:1: not JSON"));
  CHECK_THAT(error(made.folder.write("cut.json", good.substr(0, good.size() / 2))),
             Contains("cut.json:") && Contains("cut off here"));
  CHECK_THAT(
      error(made.folder.write("other.json", "{\"schema\": 1, \"kind\": \"paceline emulation\"}")),
      Contains("kind: 'paceline emulation' is not 'paceline experiment results'"));
  CHECK_THAT(changed("\"schema\": 1", "\"schema\": 2"),
             Contains("this build reads schema 1, the file has 2"));
  CHECK_THAT(changed("\"interval_ps\": ", "\"interval_ps\": 9"),
             Contains("detail.arms[0].series.") && Contains("interval_ps = 9"));
  CHECK_THAT(changed("\"fct_ns\": [", "\"fct_ns\": [1, "), Contains("detail.arms[0].fct_messages"));
  CHECK_THAT(changed("\"cnps\": [", "\"cnps\": [-1, "),
             Contains("cnps[0]: expected a whole number of at least 0"));

  const Outcome folder = paceline_command(made.folder, {"report", "small.results.json", "-o", "."});
  CHECK(folder.code == 2);
  CHECK_THAT(folder.err, Contains("it is a folder"));
}

TEST_CASE("report: --help teaches, and a missing argument points to it", "[cli]") {
  const Folder folder;
  const Outcome help = paceline_command(folder, {"report", "--help"});
  CHECK(help.code == 0);
  for (const char* part : {"RESULTS", "--out", "Examples:", "Exit status"}) {
    CHECK_THAT(help.out, Contains(part));
  }
  const Outcome nothing = paceline_command(folder, {"report"});
  CHECK(nothing.code == 2);
  CHECK_THAT(nothing.err, Contains("paceline report --help"));
}

TEST_CASE("emulate: one run of an experiment is the run of the results file", "[cli]") {
  const Made made;
  const auto results = experiment::read_results_file(made.folder.path("small.results.json"));
  const experiment::RunResult& run = results.runs.back();
  REQUIRE(run.arm == "cadence");
  const Outcome outcome = paceline_command(
      made.folder, {"emulate", "small.toml", "--scenario", "incast", "--arm", "cadence", "--seed",
                    std::to_string(run.seed), "--series-out", "s.csv", "-q"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);

  // And the first repetition, without --seed, has the series of the file, value by value.
  const Outcome first =
      paceline_command(made.folder, {"emulate", "small.toml", "--scenario", "incast", "--arm",
                                     "cadence", "--series-out", "first.csv"});
  REQUIRE(first.code == 0);
  CHECK(made.folder.read("first.csv") != made.folder.read("s.csv"));
  const experiment::TimeSeries& series = results.detail.find("incast", "cadence")->series;
  std::string csv = "until_ns";
  for (const auto& spec : experiment::signal_table()) csv += "," + std::string(spec.name);
  csv += "\n";
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Picos until = earlier(series.end, series.interval * static_cast<std::int64_t>(i + 1));
    csv += std::to_string(until.count / 1000);
    for (const auto& values : series.values) csv += "," + std::to_string(values[i]);
    csv += "\n";
  }
  CHECK(made.folder.read("first.csv") == csv);

  for (const auto& [words, message] : std::vector<std::pair<Strings, std::string>>{
           {{"--scenario", "incats", "--arm", "cadence"}, "small.toml has incast"},
           {{"--scenario", "incast", "--arm", "x"}, "small.toml has dcqcn, cadence"},
           {{"--scenario", "incast"}, "--scenario without --arm"},
           {{"--arm", "dcqcn"}, "--arm without --scenario"}}) {
    Strings all = {"emulate", "small.toml"};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome bad = paceline_command(made.folder, all);
    CHECK(bad.code == 2);
    CHECK_THAT(bad.err, Contains(message));
  }
}

}  // namespace
}  // namespace paceline::tools
