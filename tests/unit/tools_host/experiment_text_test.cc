#include "tools/host/experiment_text.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

namespace paceline::tools {

namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

Json metric(const char* name, Json champion, Json candidate, Json effect, Json low, Json high) {
  return {{"metric", name},
          {"role", "exploratory"},
          {"champion", std::move(champion)},
          {"candidate", std::move(candidate)},
          {"effect", std::move(effect)},
          {"effect_interval", Json::array({std::move(low), std::move(high)})}};
}

// The line that begins with the name.
std::string line_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

}  // namespace

TEST_CASE("a report states differences in their unit, ratios in per cent, what is unknown as -") {
  const Json report{{"experiment", "e"},
                    {"verdict", "inconclusive"},
                    {"metrics",
                     {metric("cnps_per_mb", 120.1, 1.7, -118.385, -130.2, -101.0),
                      metric("goodput", 9.5e8, 9.0e8, -0.0526, -0.08, nullptr),
                      metric("retransmitted_share", 0.01, 0.03, 0.02, 0.015, 0.025),
                      metric("collective_time", nullptr, nullptr, nullptr, nullptr, nullptr)}}};
  const std::string text = experiment_report_text(report);
  CAPTURE(text);
  CHECK_THAT(line_of(text, "cnps_per_mb"), Contains(" -118.4 ") && Contains("[-130.2, -101]"));
  CHECK(line_of(text, "cnps_per_mb").find('%') == std::string::npos);
  CHECK_THAT(line_of(text, "goodput"),
             Contains("0.9500 Gb/s") && Contains("-5.26 %") && Contains("[-8.00 %, -]"));
  CHECK_THAT(line_of(text, "retransmitted_share"),
             Contains(" 1 %") && Contains("+2 pp") && Contains("[+1.5 pp, +2.5 pp]"));
  const std::string unknown = line_of(text, "collective_time");
  CHECK(unknown.find_first_of("?0123456789") == std::string::npos);
  CHECK(text.find("nan") == std::string::npos);
}

TEST_CASE("an estimate that nothing is known of says so, with the scale of its metric") {
  CHECK(estimate_text({{"metric", "goodput"}, {"effect", 0.1}, {"low", 0.05}, {"high", 0.15}}) ==
        "goodput +10.00 % [+5.00 %, +15.00 %]");
  CHECK(
      estimate_text({{"metric", "cnps_per_mb"}, {"effect", -3}, {"low", -4}, {"high", nullptr}}) ==
      "cnps_per_mb -3 [-4, -]");
  CHECK(estimate_text({{"metric", "goodput"}, {"effect", nullptr}}) == "goodput - -");
  CHECK(estimate_text(Json::object()) == "-");
}

TEST_CASE("an experiment that was refused has no verdict") {
  const Json refused{{"id", "3"},        {"state", "refused"}, {"verdict", "running"},
                     {"name", "incast"}, {"why", "try"},       {"ended", "no such NIC"}};
  const std::string list = experiment_list_text({{"experiments", Json::array({refused})}});
  CHECK(list.find("running") == std::string::npos);
  CHECK_THAT(list, Contains("refused"));
  CHECK_THAT(experiment_status_text(refused), Contains("verdict: none"));
  Json going = refused;
  going["state"] = "running";
  CHECK_THAT(experiment_list_text({{"experiments", Json::array({going})}}), Contains("running"));
}

}  // namespace paceline::tools
