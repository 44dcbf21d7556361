#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "control/experiment/live/report/live_report.h"
#include "tests/unit/experiment_live/synthetic.h"

using namespace paceline;
using namespace paceline::experiment;
using namespace paceline::experiment::live;
using namespace paceline::experiment::live::test;

namespace {

struct Example {
  Plan plan = cluster_plan(40, 2, 12);
  Schedule schedule;
  std::vector<BlockRecord> records;
  Circumstances now;
  LiveAnalysis analysis;

  Example() {
    plan.name = "<b>bold</b>";
    plan.soft = default_soft_limits();
    plan.metrics = {BlockMetric::p99_medium};
    plan.load_strata = {0.5, 0.8};
    schedule = make_schedule(plan);
    Random random(6);
    records = draw_blocks(schedule, random, [](const BlockPlace& place, Random& r) {
      return 1 - 0.1 * place.arm + 0.03 * standard_normal(r);
    });
    for (BlockRecord& r : records) {
      r.values[BlockMetric::goodput] = 4e10 * (1 + 0.01 * standard_normal(random));
      r.values[BlockMetric::p99_medium] = 5 + 0.5 * standard_normal(random);
    }
    records[9].discarded = Discarded::itself;
    records[9].why = "environment: <script>";
    now.finished = now.calibrated = true;
    analysis = analyse_live(plan, schedule, records, now, {true, 300, 300});
  }
  LiveReport report() const {
    return {plan, schedule, records, now, analysis, "0.1", "paceline experiment report plan.toml"};
  }
};

}  // namespace

TEST_CASE("the report as JSON says what the analysis says") {
  const Example example;
  const auto json = nlohmann::json::parse(live_report_json(example.report()));
  CHECK(json["verdict"] == "ship");
  CHECK(json["pairs_usable"] == 39);
  CHECK(json["discarded"].size() == 1);
  CHECK(json["metrics"][0]["metric"] == "log_slowdown");
  CHECK(json["metrics"][0]["effect"].get<double>() == Approx(std::exp(-0.1) - 1).margin(0.02));
  CHECK(json["course"].size() == json["metrics"][0]["pairs"]);
  CHECK(json["interference"]["known"] == true);
  CHECK(json["strata"][2]["load_to"].is_null());
  CHECK(json["schedule_sha256"].get<std::string>().size() == 64);
  CHECK(live_report_json(example.report()) == live_report_json(example.report()));
}

TEST_CASE("the page stands alone, and no text becomes markup") {
  const Example example;
  const std::string page = live_report_page(example.report());
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("<b>bold") == std::string::npos);
  CHECK(page.find("http://") == std::string::npos);
  CHECK(page.find("https://") == std::string::npos);
  CHECK(page.find("NaN") == std::string::npos);
  CHECK(page.find("\"nan") == std::string::npos);
  for (const char* part : {"id=\"course\"", "id=\"blocks\"", "Interference", "By load",
                           "within its limit", "paceline experiment report plan.toml"}) {
    INFO(part);
    CHECK(page.find(part) != std::string::npos);
  }
  // A point for every block, whatever became of it.
  std::size_t points = 0;
  for (std::size_t at = page.find("<title>block "); at != std::string::npos;
       at = page.find("<title>block ", at + 1)) {
    ++points;
  }
  CHECK(points == example.records.size());
}

TEST_CASE("figures are in the unit of their metric, and nothing is nan") {
  Example example;
  example.plan.metrics = {BlockMetric::cnps_per_mb, BlockMetric::retransmitted_share,
                          BlockMetric::queue_bytes};
  for (BlockRecord& r : example.records) {
    r.values[BlockMetric::cnps_per_mb] = r.place.arm == 0 ? 120 + r.place.block % 3 : 2;
    r.values[BlockMetric::retransmitted_share] = 0.01 * (1 + r.place.arm);
  }
  example.analysis =
      analyse_live(example.plan, example.schedule, example.records, example.now, {true, 300, 300});
  const std::string page = live_report_page(example.report());
  const auto row = [&page](const std::string& label) {
    const std::size_t at = page.find("<th scope=\"row\">" + label + "</th>");
    return at == std::string::npos ? "" : page.substr(at, page.find("</tr>", at) - at);
  };
  const std::string cnps = row("CNPs per MB");
  CHECK(cnps.find("<td>-119</td>") != std::string::npos);
  CHECK(cnps.find('%') == std::string::npos);
  CHECK(row("retransmitted packets").find("<td>+1\u00a0pp</td>") != std::string::npos);
  CHECK(row("queue").find_first_of("123456789") == std::string::npos);
  CHECK(page.find("nan") == std::string::npos);
  const auto json = nlohmann::json::parse(live_report_json(example.report()));
  for (const auto& metric : json["metrics"]) {
    if (metric["metric"] != "queue_bytes") continue;
    CHECK(metric["effect"].is_null());
    CHECK(metric["effect_interval"][0].is_null());
  }
  // For eyes, and for tests/report.
  if (const char* path = std::getenv("PACELINE_WRITE_PAGE")) std::ofstream(path) << page;
}

TEST_CASE("an experiment of which nothing is known yet has a report, too") {
  const Plan plan = switchback_plan(20);
  const Schedule schedule = make_schedule(plan);
  const Circumstances now;
  const LiveAnalysis analysis = analyse_live(plan, schedule, {}, now);
  CHECK(analysis.verdict == Verdict::running);
  const LiveReport report{plan, schedule, {}, now, analysis, "0.1", "x"};
  CHECK(nlohmann::json::parse(live_report_json(report))["metrics"][0]["mean"].is_null());
  CHECK(live_report_page(report).find("running") != std::string::npos);
}
