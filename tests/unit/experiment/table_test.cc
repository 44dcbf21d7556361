#include "control/experiment/report/table.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "control/experiment/report/report.h"
#include "control/experiment/report/value_text.h"
#include "tests/unit/experiment/runs.h"

using namespace paceline;
using namespace paceline::experiment;

namespace {

// A small deterministic wiggle, different per repetition, arm and metric.
double wiggle(std::uint32_t repetition, std::size_t arm, double metric) {
  return 1 + 0.01 * std::sin(1.7 * repetition + 2.9 * static_cast<double>(arm) + metric);
}

// An incast that the arm wins, with a baseline that twice did not finish; open-loop traffic with a
// win and a loss; a ring where nothing is shown.
AnalysisPlan sample_plan() {
  AnalysisPlan plan = test::plan_with({"incast-32", "websearch-80", "ring"}, 12);
  plan.name = "first";
  plan.summaries = {
      {"collective efficiency", Metric::collective_efficiency, {"incast-32", "ring"}}};
  return plan;
}

Analysis sample_analysis() {
  const AnalysisPlan plan = sample_plan();
  const auto runs =
      test::runs_of(plan, [](RunResult& run, std::size_t s, std::size_t a, std::uint32_t r) {
        const bool arm = a == 1;
        MetricValues& m = run.metrics;
        if (s != 1) {
          const double level = s == 2 ? 0.9 : (arm ? 0.95 : 0.66);
          m[Metric::collective_efficiency] = level * wiggle(r, a, 0);
        } else {
          m[Metric::slowdown_small_mean] = (arm ? 1.4 : 3.2) * wiggle(r, a, 1);
          m[Metric::slowdown_small_p99] = (arm ? 2.5 : 30) * wiggle(r, a, 2);
          m[Metric::slowdown_small_p50] = 1.1 * wiggle(r, a, 3);
        }
        m[Metric::goodput_gbps] = (arm || s == 2 ? 94 : 66) * wiggle(r, a, 4);
        m[Metric::fct_mean_us] = (s == 1 && arm ? 250 : 220) * wiggle(r, a, 5);
        m[Metric::fct_p99_us] = 26'000 * wiggle(r, a, 6);
        m[Metric::queue_p99_bytes] =
            arm ? (s == 2 ? 0 : 20'000 * wiggle(r, a, 7)) : 1.2e6 * wiggle(r, a, 7);
        m[Metric::queue_max_bytes] = arm ? 64'000 * wiggle(r, a, 8) : 28.9e6 * wiggle(r, a, 8);
        m[Metric::drops] = 0;
        m[Metric::pfc_pause_us] = arm ? 0 : 1200 * wiggle(r, a, 9);
        m[Metric::cnps] = arm ? 0 : std::round(30'000 * wiggle(r, a, 10));
        m[Metric::control_overhead] = (arm ? 0.031 : 0.026) * wiggle(r, a, 11);
        m[Metric::jain_fairness] = arm ? 0.999 : 0.97;
        m[Metric::limited_path] = arm ? 0.02 : 0.95;
        m[Metric::limited_grant] = arm ? 0.93 : 0;
        m[Metric::limited_application] = 0.05;
        if (s == 0 && !arm && r % 6 == 1) test::stop_early(run, "stopped at max_hops = 4000000");
      });
  return analyse(runs, plan);
}

std::string golden(const std::string& name) {
  std::ifstream in(std::string(PACELINE_SOURCE_DIR) + "/tests/unit/experiment/golden/" + name);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("the table, word for word") {
  CHECK(format_table(sample_analysis(), {}) == golden("table.txt"));
}

TEST_CASE("the Markdown, word for word") {
  CHECK(format_markdown(sample_analysis(), {}) == golden("table.md"));
}

TEST_CASE("the table is plain ASCII of at most 110 columns without trailing blanks") {
  for (const bool all : {false, true}) {
    for (const std::string& line : lines_of(format_table(sample_analysis(), {false, all}))) {
      INFO(line);
      CHECK(line.size() <= 110);
      CHECK((line.empty() || line.back() != ' '));
      CHECK(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }));
    }
  }
}

TEST_CASE("colour adds to the words and takes nothing away") {
  const std::string plain = format_table(sample_analysis(), {false, false});
  std::string colored = format_table(sample_analysis(), {true, false});
  CHECK(colored.find("\x1b[32mbetter\x1b[0m") != std::string::npos);
  CHECK(colored.find("\x1b[31mworse\x1b[0m") != std::string::npos);
  for (const char* code : {"\x1b[32m", "\x1b[31m", "\x1b[0m"}) {
    for (std::size_t at; (at = colored.find(code)) != std::string::npos;) {
      colored.erase(at, std::string_view(code).size());
    }
  }
  CHECK(colored == plain);
}

TEST_CASE("the full table has every metric that applies, the brief one the headlines") {
  const auto has_row = [](const std::string& text, std::string_view label) {
    for (const std::string& line : lines_of(text)) {
      if (line.size() > 3 && line.compare(3, label.size(), label) == 0) return true;
    }
    return false;
  };
  const std::string brief = format_table(sample_analysis(), {false, false});
  const std::string full = format_table(sample_analysis(), {false, true});
  CHECK(has_row(brief, "FCT mean"));
  CHECK_FALSE(has_row(brief, "slowdown p50, <= 64K"));
  CHECK(has_row(full, "slowdown p50, <= 64K"));
  CHECK(has_row(full, "limited by grant"));
  CHECK_FALSE(has_row(full, "slowdown p50, > 1M"));
}

TEST_CASE("losses are named even when their metric is not in the brief table") {
  AnalysisPlan plan = test::plan_with({"a"}, 12);
  const auto runs =
      test::runs_of(plan, [](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
        run.metrics[Metric::collective_efficiency] = (a == 0 ? 0.5 : 0.6) * wiggle(r, a, 0);
        run.metrics[Metric::fct_p50_us] = (a == 0 ? 50 : 60) * wiggle(r, a, 1);
      });
  const std::string text = format_table(analyse(runs, plan), {});
  const std::size_t section = text.find("Where cadence does not win");
  REQUIRE(section != std::string::npos);
  CHECK(text.find("a, FCT p50: worse, +", section) != std::string::npos);
  CHECK(text.find("collective efficiency", section) == std::string::npos);
}

TEST_CASE("an arm that wins everywhere is said to, and only then") {
  AnalysisPlan plan = test::plan_with({"a"}, 12);
  const auto runs =
      test::runs_of(plan, [](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
        run.metrics[Metric::collective_efficiency] = (a == 0 ? 0.5 : 0.6) * wiggle(r, a, 0);
      });
  CHECK(format_table(analyse(runs, plan), {}).find("Every primary metric is better") !=
        std::string::npos);
  CHECK(format_table(sample_analysis(), {}).find("Every primary metric is better") ==
        std::string::npos);
}

TEST_CASE("an experiment without a finished run still prints") {
  const AnalysisPlan plan = sample_plan();
  const Analysis analysis = analyse({}, plan);
  const std::string text = format_table(analysis, {});
  CHECK(text.find("incast-32: no run has finished") != std::string::npos);
  CHECK(text.find("72 of 72 runs were not done") != std::string::npos);
  CHECK(text.find("Every primary metric is better") == std::string::npos);
  CHECK_FALSE(format_markdown(analysis, {}).empty());
}

TEST_CASE("summary lines give each primary metric, then the summaries") {
  const std::vector<std::string> lines = summary_of(sample_analysis());
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].find("incast-32, collective efficiency: cadence +4") == 0);
  CHECK(lines[1].find("websearch-80, slowdown p99, <= 64K: cadence -91.") == 0);
  CHECK(lines[2].find("no difference shown") != std::string::npos);
  CHECK(lines[3].find("geometric mean over incast-32, ring, 10 pairs") != std::string::npos);
}

TEST_CASE("values keep four digits") {
  CHECK(significant(0) == "0");
  CHECK(significant(12) == "12");
  CHECK(significant(0.95342) == "0.9534");
  CHECK(significant(66.914) == "66.91");
  CHECK(significant(123.456) == "123.5");
  CHECK(significant(28'912.7) == "28913");
  CHECK(significant(0.00012346) == "0.0001235");
  CHECK(significant(0.0000123) == "1.2e-05");
  CHECK(significant(kUndefined) == "-");
}

TEST_CASE("units follow the size of the values of a row") {
  CHECK(display_unit(Unit::bytes, 9000).name == "B");
  CHECK(display_unit(Unit::bytes, 64'000).name == "KB");
  CHECK(display_unit(Unit::bytes, 28.9e6).name == "MB");
  CHECK(display_unit(Unit::micros, 9999).name == "us");
  CHECK(display_unit(Unit::micros, 26'000).name == "ms");
  CHECK(display_unit(Unit::share, 0.5).factor == 100);
}

TEST_CASE("effects read as people say them") {
  const auto ratio = [](double effect, double low, double high) {
    PairedEffect paired;
    paired.effect = effect;
    paired.interval = {low, high};
    const EffectText text = effect_text(paired, Unit::micros);
    return text.effect + " " + text.interval;
  };
  CHECK(ratio(0.4243, 0.401, 0.448) == "+42.4 % [+40.1, +44.8]");
  CHECK(ratio(-0.9978, -0.998, -0.997) == "-99.78 % [-99.80, -99.70]");
  CHECK(ratio(0.00001, -0.001, 0.001) == "0.00 % [-0.10, +0.10]");
  CHECK(ratio(42.1, 39.2, 44.9) == "x43.1 [x40.2, x45.9]");
  CHECK(ratio(0.5, kUndefined, kUndefined) == "+50.0 % ");
  CHECK(ratio(kUndefined, kUndefined, kUndefined) == "- ");
  PairedEffect difference;
  difference.scale = Compare::difference;
  difference.baseline_mean = 25e6;
  difference.treatment_mean = 0;
  difference.effect = -25e6;
  difference.interval = {-26e6, -24e6};
  CHECK(effect_text(difference, Unit::bytes).effect == "-25 MB");
  CHECK(effect_text(difference, Unit::bytes).interval == "[-26, -24]");
}

TEST_CASE("p-values are never printed as zero") {
  CHECK(p_text(1e-20) == "<.001");
  CHECK(p_text(0.0234) == ".023");
  CHECK(p_text(1) == "1.000");
  CHECK(p_text(0.99999) == "1.000");
  CHECK(p_text(kUndefined) == "-");
}
