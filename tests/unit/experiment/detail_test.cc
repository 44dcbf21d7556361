// Distributions, their way through the results file, and the hash that leaves them out.
#include "control/experiment/detail.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "control/experiment/results/results_file.h"
#include "dataplane/base/hash.h"
#include "dataplane/base/numbers/random.h"
#include "tests/unit/experiment/runs.h"

using namespace paceline;
using namespace paceline::experiment;

namespace {

Results with_detail() {
  Results results;
  results.version = "0.1.0";
  results.configuration = "name = \"x\"\n";
  results.plan = test::plan_with({"incast"}, 3);
  results.runs =
      test::runs_of(results.plan, [](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
        run.metrics[Metric::collective_efficiency] = 0.8 + 0.1 * static_cast<double>(a) + 0.01 * r;
      });
  results.detail.file = "a folder/\"x\".toml";
  results.detail.overrides = {"seed=7", "fabric.rate=400Gb/s"};
  for (const std::string& arm : results.plan.arms) {
    ArmDetail detail;
    detail.scenario = "incast";
    detail.arm = arm;
    Distribution one;
    one.runs = 1;
    Random random(arm.size());
    for (int i = 0; i < 500; ++i) {
      const Picos ideal{1'000'000 + static_cast<std::int64_t>(random.below(1'000'000))};
      one.add(1 + random.below(1 << 20), ideal * static_cast<std::int64_t>(1 + random.below(40)),
              ideal);
    }
    detail.distribution.merge(one);
    detail.distribution.merge(one);
    detail.series.seed = 12;
    detail.series.interval = {3'000'000};
    detail.series.looks = 2;
    detail.series.end = {10'000'000};
    for (auto& values : detail.series.values) {
      for (int i = 0; i < 4; ++i) values.push_back(random.below(1'000'000));
    }
    results.detail.arms.push_back(figures_of(detail));
  }
  return results;
}

std::string file_text(const Results& results) {
  return results_text(results, analyse(results.runs, results.plan));
}

}  // namespace

TEST_CASE("sizes of messages fall into octaves") {
  CHECK(size_octave(1) == 0);
  CHECK(size_octave(2) == 1);
  CHECK(size_octave(3) == 2);
  CHECK(size_octave(4) == 2);
  CHECK(size_octave(65'536) == 16);
  CHECK(size_octave(65'537) == 17);
}

TEST_CASE("a distribution: every message once, in any order of merging, quantiles within 1 %") {
  Distribution a, b;
  a.runs = b.runs = 1;
  for (int i = 1; i <= 1000; ++i) {
    // FCT of i microseconds; the slowdown is i / 10.
    (i % 3 == 0 ? a : b)
        .add(i <= 500 ? 1000 : 100'000, picos_from_micros(i), picos_from_micros(10));
  }
  b.outstanding = 4;
  ArmDetail ab{"s", "x", a, {}};
  ab.distribution.merge(b);
  ArmDetail ba{"s", "x", b, {}};
  ba.distribution.merge(a);
  const ArmFigures figures = figures_of(ab);
  CHECK(figures.messages == 1000);
  CHECK(figures.runs == 2);
  CHECK(figures.outstanding == 4);
  CHECK(figures.fct_ns.back().count == 1000);
  CHECK(figures.fct_ns.back().value == 1'000'000);
  CHECK(figures.fct_ns.front().value == 1000);
  for (const CdfPoint& point : figures.fct_ns) {  // count messages took at most 1.01 x value
    CHECK(static_cast<double>(point.value) ==
          Approx(static_cast<double>(point.count) * 1000).epsilon(0.01));
  }
  REQUIRE(figures.slowdown.size() == 2);
  CHECK(figures.slowdown[0].up_to_bytes == 1024);
  CHECK(figures.slowdown[0].messages == 500);
  CHECK(figures.slowdown[0].p50 == Approx(25).epsilon(0.01));
  CHECK(figures.slowdown[0].p99 == Approx(49.5).epsilon(0.01));
  CHECK(figures.slowdown[0].max == Approx(50));
  CHECK(figures.slowdown[1].up_to_bytes == 131'072);
  CHECK(figures.slowdown[1].p95 == Approx(97.5).epsilon(0.01));

  const ArmFigures other = figures_of(ba);
  REQUIRE(other.fct_ns.size() == figures.fct_ns.size());
  for (std::size_t i = 0; i < other.fct_ns.size(); ++i) {
    CHECK(other.fct_ns[i].value == figures.fct_ns[i].value);
    CHECK(other.fct_ns[i].count == figures.fct_ns[i].count);
  }
}

TEST_CASE("detail comes back from the results file, byte for byte") {
  const Results results = with_detail();
  const std::string text = file_text(results);
  const Results back = parse_results(text, "r.json");
  CHECK(file_text(back) == text);
  CHECK(back.detail.file == results.detail.file);
  CHECK(back.detail.overrides == results.detail.overrides);
  REQUIRE(back.detail.arms.size() == 2);
  const ArmFigures* arm = back.detail.find("incast", "cadence");
  REQUIRE(arm != nullptr);
  CHECK(arm->messages == 1000);
  CHECK(arm->series.end == Picos{10'000'000});
  CHECK(arm->series.values == results.detail.arms[1].series.values);
  CHECK(back.detail.find("incast", "x") == nullptr);
}

TEST_CASE("the content hash is that of the text without detail") {
  Results results = with_detail();
  const Analysis analysis = analyse(results.runs, results.plan);
  const std::uint64_t hash = content_hash(results, analysis);
  const std::string with = results_text(results, analysis);
  const std::size_t at = with.find(",\n  \"detail\"");
  REQUIRE(at != std::string::npos);
  CHECK(hash == ContentHash{}.text(with.substr(0, at) + "\n}\n").value());
  results.detail.file = "elsewhere.toml";
  CHECK(content_hash(results, analysis) == hash);
  results.detail = {};
  CHECK(content_hash(results, analysis) == hash);
  CHECK(ContentHash{}.text(results_text(results, analysis)).value() == hash);
  results.runs[0].hops += 1;
  CHECK(content_hash(results, analysis) != hash);
}

TEST_CASE("wrong detail is refused with the member's path") {
  const std::string text = file_text(with_detail());
  const auto error_after = [&](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json root = nlohmann::json::parse(text);
    change(root["detail"]);
    try {
      parse_results(root.dump(), "r.json");
    } catch (const ResultsFileError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using Json = nlohmann::json;
  CHECK(error_after([](Json&) {}) == "");
  CHECK(error_after([](Json& d) { d = 3; }).find("r.json: detail: expected an object") == 0);
  CHECK(error_after([](Json& d) { d["file"] = 3; }).find("detail.file: expected a string") !=
        std::string::npos);
  CHECK(error_after([](Json& d) {
          d["arms"][1]["arm"] = "x";
        }).find("detail.arms[1].arm: 'x' is none of: dcqcn, cadence") != std::string::npos);
  CHECK(error_after([](Json& d) {
          d["arms"][1]["arm"] = "dcqcn";
        }).find("detail.arms[1]: a second entry for scenario 'incast', arm 'dcqcn'") !=
        std::string::npos);
  CHECK(error_after([](Json& d) {
          d["arms"][0]["fct_messages"].erase(0);
        }).find("detail.arms[0].fct_messages") != std::string::npos);
  CHECK(error_after([](Json& d) {
          d["arms"][0]["fct_ns"][1] = 1;
        }).find("detail.arms[0].fct_ns[1]: a distribution must ascend") != std::string::npos);
  CHECK(error_after([](Json& d) { d["arms"][0]["series"]["cnps"].push_back(1); })
            .find("detail.arms[0].series.cnps: 5 values, but end_ps = 10000000 and interval_ps = "
                  "3000000 make 4") != std::string::npos);
  CHECK(error_after([](Json& d) {
          d["arms"][0]["series"]["end_ps"] = 0;
        }).find("detail.arms[0].series.end_ps: 0 is outside 1..") != std::string::npos);
  CHECK(error_after([](Json& d) {
          d["arms"][0]["slowdown_by_size"][0]["p99"] = "a";
        }).find("slowdown_by_size[0].p99: expected a number, found a string") != std::string::npos);
}

TEST_CASE("every signal is explained in the telemetry page") {
  std::ifstream file(PACELINE_SOURCE_DIR "/docs/telemetry.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  for (const SignalSpec& spec : signal_table()) {
    CAPTURE(spec.name);
    CHECK(page.find("| `" + std::string(spec.name) + "` | ") != std::string::npos);
  }
}
