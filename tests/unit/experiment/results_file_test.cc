#include "control/experiment/results/results_file.h"

#include <fcntl.h>
#include <stdlib.h>  // mkdtemp is POSIX
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "dataplane/base/numbers/distributions.h"
#include "tests/unit/experiment/runs.h"

using namespace paceline;
using namespace paceline::experiment;

namespace {

Results sample(std::uint32_t repetitions = 4) {
  Results results;
  results.version = "0.1.0";
  results.configuration = "name = \"first\"\n# a \"quoted\" line\twith a tab\n";
  results.plan = test::plan_with({"incast", "web \\ search"}, repetitions);
  results.plan.summaries = {{"all", Metric::collective_efficiency, {"incast", "web \\ search"}}};
  Random random(6);
  results.runs = test::runs_of(
      results.plan, [&](RunResult& run, std::size_t s, std::size_t a, std::uint32_t r) {
        for (const MetricSpec& spec : metric_table()) {
          run.metrics[spec.metric] = (1 + 0.1 * static_cast<double>(a)) * (random.uniform() + 0.5) *
                                     det_pow(10, static_cast<double>(random.below(10)));
        }
        run.metrics[Metric::drops] = 0;
        run.metrics[Metric::queue_max_bytes] = 1'234'567'890'123.0;
        run.metrics[Metric::fct_p999_us] = kUndefined;
        if (s == 1 && a == 0 && r == 2) test::stop_early(run, "stopped at \"max_hops\"");
      });
  return results;
}

std::string text_of(const Results& results) {
  return results_text(results, analyse(results.runs, results.plan));
}

// The errors of a text, joined by newlines; "" if it is accepted.
std::string errors_of(const std::string& text) {
  try {
    parse_results(text, "r.json");
  } catch (const ResultsFileError& error) {
    return error.what();
  }
  return "";
}

// The sample file with one change.
std::string changed(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json root = nlohmann::json::parse(text_of(sample()));
  change(root);
  return root.dump();
}

}  // namespace

TEST_CASE("a results file read back gives the same bytes, effects included") {
  for (const std::uint32_t repetitions : {4U, 21U}) {
    Results results = sample(repetitions);
    results.plan.resamples = 500;
    const std::string text = text_of(results);
    const Results back = parse_results(text, "r.json");
    CHECK(text_of(back) == text);
    CHECK(back.configuration == results.configuration);
    CHECK(back.plan.seed == results.plan.seed);
    CHECK(back.plan.summaries.size() == 1);
    REQUIRE(back.runs.size() == results.runs.size());
  }
}

TEST_CASE("every field of a run survives, rounded as stated") {
  const Results results = sample();
  const Results back = parse_results(text_of(results), "r.json");
  for (const RunResult& run : back.runs) {
    const auto original =
        std::find_if(results.runs.begin(), results.runs.end(), [&](const RunResult& other) {
          return other.scenario == run.scenario && other.arm == run.arm &&
                 other.repetition == run.repetition;
        });
    REQUIRE(original != results.runs.end());
    CHECK(run.seed == original->seed);
    CHECK(run.status == original->status);
    CHECK(run.reason == original->reason);
    CHECK(run.messages_started == original->messages_started);
    CHECK(run.messages_completed == original->messages_completed);
    CHECK(run.hops == original->hops);
    CHECK(run.events == original->events);
    CHECK(run.simulated == original->simulated);
    CHECK(run.trace_hash == original->trace_hash);
    for (const MetricSpec& spec : metric_table()) {
      const double was = original->metrics[spec.metric];
      const double is = run.metrics[spec.metric];
      if (std::isnan(was)) {
        CHECK(std::isnan(is));
      } else {
        CHECK(is == Approx(was).epsilon(1e-8));
      }
    }
    CHECK(run.metrics[Metric::queue_max_bytes] == 1'234'567'890'123.0);
  }
}

TEST_CASE("the order in which runs finished does not show") {
  Results results = sample();
  const std::string text = text_of(results);
  std::reverse(results.runs.begin(), results.runs.end());
  CHECK(text_of(results) == text);
}

TEST_CASE("keys have a fixed order, NaN is null, drops of zero are 0") {
  const std::string text = text_of(sample());
  std::size_t at = 0;
  for (const char* key : {"\"schema\": 1", "\"kind\"", "\"version\"", "\"experiment\"", "\"seed\"",
                          "\"repetitions\"", "\"scenarios\"", "\"arms\"", "\"configuration\"",
                          "\"metrics\"", "\"runs\"", "\"effects\"", "\"summaries\"", "\"notes\""}) {
    const std::size_t found = text.find(std::string("\n  ") + key);
    INFO(key);
    REQUIRE(found != std::string::npos);
    CHECK(found >= at);
    at = found;
  }
  CHECK(text.find("\"fct_p999_us\": null") != std::string::npos);
  CHECK(text.find("\"drops\": 0,") != std::string::npos);
  CHECK(text.find("nan") == std::string::npos);
  CHECK(text.back() == '\n');
  // Numbers are as short as number_text makes them: no digit 10 of a measurement.
  const nlohmann::json root = nlohmann::json::parse(text);
  CHECK(root["effects"].size() > 50);
  CHECK(root["runs"][0]["trace_hash"] == "0x00abcdef01234567");
  CHECK(root["runs"].size() == 16);
}

TEST_CASE("a file that is cut off is reported with line and column") {
  const std::string text = text_of(sample());
  for (std::size_t cut = 0; cut + 2 < text.size(); cut += 997) {
    INFO("cut at " << cut);
    const std::string errors = errors_of(text.substr(0, cut));
    CHECK(errors.find("r.json:") == 0);
    CHECK(errors.find("not JSON, or cut off here") != std::string::npos);
  }
  CHECK(errors_of("{\n  \"schema\": x\n}").find("r.json:2:13: ") == 0);
}

// What prints or copies it would recurse as deep.
TEST_CASE("a file that is nested deep is refused before it is read") {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  CHECK(errors_of("{\"schema\": 1, \"version\": " + deep + "}") ==
        "r.json:1:89: nested deeper than 64 levels");
}

TEST_CASE("a long number, text or list of names is refused, and shown in part") {
  const std::string number(10'000'000, '7');
  CHECK(errors_of("{\n  \"schema\": 1,\n  \"seed\": " + number + "}") ==
        "r.json:3:11: a number of more than 64 characters");
  const std::string kind = errors_of(changed([&](auto& root) { root["kind"] = number; }));
  CHECK(kind.find("r.json: kind: '777") == 0);
  CHECK(kind.size() < 4200);
  const std::string names = errors_of(changed([](auto& root) {
    root["arms"] = nlohmann::json::array();
    for (int i = 0; i <= 10'000; ++i) root["arms"].push_back(std::to_string(i));
  }));
  CHECK(names.find("r.json: arms: 10001 given, at most 10000 allowed") == 0);
}

TEST_CASE("a file of another schema or kind is refused before anything else") {
  CHECK(errors_of(changed([](auto& root) { root["schema"] = 2; })) ==
        "r.json: schema: this build reads schema 1, the file has 2");
  CHECK(errors_of(changed([](auto& root) { root.erase("schema"); })) ==
        "r.json: schema: missing; expected a whole number of at least 0");
  CHECK(errors_of(changed([](auto& root) { root["kind"] = "cake"; })) ==
        "r.json: kind: 'cake' is not 'paceline experiment results'");
  CHECK(errors_of("[]") == "r.json: top level: expected an object, found an array");
}

TEST_CASE("errors name the member, the value and what is allowed") {
  const auto error_after = [](const std::function<void(nlohmann::json&)>& change) {
    return errors_of(changed(change));
  };
  CHECK(error_after([](auto& r) { r.erase("seed"); }) ==
        "r.json: seed: missing; expected a whole number of at least 0");
  CHECK(error_after([](auto& r) { r["seed"] = -1; }) ==
        "r.json: seed: expected a whole number of at least 0, found a number: -1");
  CHECK(error_after([](auto& r) { r["confidence"] = 95; }) ==
        "r.json: confidence: 95 is outside 0.5..0.9999");
  CHECK(error_after([](auto& r) {
          r["arms"] = {"x", "x"};
        }).find("r.json: arms[1]: 'x' occurs twice") == 0);
  CHECK(error_after([](auto& r) {
          r["scenarios"] = nlohmann::json::array();
        }).find("r.json: scenarios: 0 given, at least 1 needed") == 0);
  CHECK(error_after([](auto& r) { r["runs"][3]["arm"] = "swift"; }) ==
        "r.json: runs[3].arm: 'swift' is none of: dcqcn, cadence");
  CHECK(error_after([](auto& r) { r["runs"][3]["repetition"] = 4; }) ==
        "r.json: runs[3].repetition: 4 is outside 0..3");
  CHECK(error_after([](auto& r) { r["runs"][3]["status"] = "fine"; }) ==
        "r.json: runs[3].status: 'fine' is none of: ok, unfinished, failed");
  CHECK(error_after([](auto& r) { r["runs"][3]["trace_hash"] = "0x12"; }) ==
        "r.json: runs[3].trace_hash: '0x12' is not 0x and 16 hexadecimal digits");
  CHECK(error_after([](auto& r) { r["runs"][3]["messages_completed"] = 33; }) ==
        "r.json: runs[3].messages_completed: 33 completed of 32 started");
  CHECK(error_after([](auto& r) { r["runs"][3]["metrics"].erase("drops"); }) ==
        "r.json: runs[3].metrics.drops: missing; expected a number or null");
  CHECK(error_after([](auto& r) { r["runs"][3]["metrics"]["drops"] = "many"; }) ==
        "r.json: runs[3].metrics.drops: expected a number or null, found a string: \"many\"");
  CHECK(error_after([](auto& r) {
          r["metrics"][0]["name"] = "luck";
        }).find("r.json: metrics[0].name: unknown metric 'luck'") == 0);
  CHECK(error_after([](auto& r) {
          r["runs"][3] = r["runs"][2];
        }).find("r.json: runs[3]: a second run of scenario") == 0);
  CHECK(error_after([](auto& r) { r["runs"][3] = 5; }) ==
        "r.json: runs[3]: expected an object, found a number");
  CHECK(error_after([](auto& r) { r["summary_plan"][0]["scenarios"] = {"nowhere"}; }) ==
        "r.json: summary_plan[0].scenarios: 'nowhere' is not among the scenarios");
}

TEST_CASE("all errors are reported, not only the first") {
  try {
    parse_results(changed([](auto& root) {
                    root.erase("version");
                    root["runs"][0].erase("seed");
                    root["runs"][5]["hops"] = "x";
                  }),
                  "r.json");
    FAIL("accepted");
  } catch (const ResultsFileError& error) {
    REQUIRE(error.errors().size() == 3);
    CHECK(error.errors()[0].find("version") != std::string::npos);
    CHECK(error.errors()[1].find("runs[0].seed") != std::string::npos);
    CHECK(error.errors()[2].find("runs[5].hops") != std::string::npos);
  }
}

TEST_CASE("a metric that an older file does not have is not applicable; unknown keys are let be") {
  const std::string text = changed([](auto& root) {
    root["metrics"].erase(index_of(Metric::fct_mean_us));
    for (auto& run : root["runs"]) run["metrics"].erase("fct_mean_us");
    root["something_new"] = 1;
  });
  const Results results = parse_results(text, "r.json");
  CHECK(std::isnan(results.runs[0].metrics[Metric::fct_mean_us]));
  CHECK_FALSE(std::isnan(results.runs[0].metrics[Metric::fct_p50_us]));
}

TEST_CASE("files are written whole or not at all") {
  std::string pattern = (std::filesystem::temp_directory_path() / "paceline-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  const std::filesystem::path folder = pattern;
  const std::string path = (folder / "r.json").string();
  const std::string text = text_of(sample());
  write_results_file(path, "older");
  write_results_file(path, text);
  CHECK(text_of(read_results_file(path)) == text);
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  CHECK_THROWS_AS(write_results_file((folder / "none" / "r.json").string(), text),
                  ResultsFileError);
  CHECK_THROWS_AS(read_results_file((folder / "none.json").string()), ResultsFileError);
  CHECK_THROWS_AS(read_results_file(folder.string()), ResultsFileError);
  CHECK_THROWS_AS(read_results_file("/dev/zero"), ResultsFileError);  // and it ends
  // A link where the new file is written first, put there by another user: it is not followed.
  std::filesystem::create_symlink(folder / "victim", path + ".partial");
  write_results_file(path, text);
  CHECK_FALSE(std::filesystem::exists(folder / "victim"));
  // A folder in the way: nothing is left beside it.
  std::filesystem::create_directories(folder / "taken" / "inside");
  CHECK_THROWS_AS(write_results_file((folder / "taken").string(), text), ResultsFileError);
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 2);
  // Something other than a file is written to, and stays what it is: a pipe, or /dev/null.
  const std::string pipe = (folder / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  write_results_file(pipe, "abc");
  char got[8] = {};
  CHECK(::read(reader, got, sizeof got) == 3);
  CHECK(std::string(got) == "abc");
  ::close(reader);
  CHECK(std::filesystem::is_fifo(pipe));
  std::filesystem::remove_all(folder);
}
