// docs/telemetry.md lists the series that a segment has.
#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "dataplane/telemetry/series.h"

namespace paceline::telemetry {
namespace {

const std::string kPage = std::string(PACELINE_SOURCE_DIR) + "/docs/telemetry.md";
const std::string kBegin = "<!-- series: begin -->\n";
const std::string kEnd = "<!-- series: end -->\n";

std::string page_text() {
  std::ifstream in(kPage);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST_CASE("the reference lists the series", "[segment]") {
  const std::string text = page_text();
  const auto begin = text.find(kBegin);
  const auto end = text.find(kEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  INFO("write it again with: test_telemetry \"[.write-reference]\"");
  const auto from = begin + kBegin.size();
  CHECK(text.substr(from, end - from) == series_markdown());
}

TEST_CASE("write the reference of the series", "[.write-reference]") {
  std::string text = page_text();
  const auto from = text.find(kBegin) + kBegin.size();
  text.replace(from, text.find(kEnd) - from, series_markdown());
  std::ofstream(kPage) << text;
}

TEST_CASE("no two series have one name, and every counter has its place", "[segment]") {
  std::set<std::string_view> names;
  for (const Series& series : nic_series()) CHECK(names.insert(series.name).second);
  EngineCounters counters;
  counters.rx_packets = 1;
  counters.tx_stalled = 2;
  counters.malformed[3] = 4;
  counters.malformed[4] = 5;
  NicValues values{};
  put_counters(counters, values);
  CHECK(values[0] == 1);
  CHECK(nic_series()[0].name == "rx_packets");
  CHECK(values[kEngineSeries - 1] == 2);
  CHECK(nic_series()[kEngineSeries - 1].name == "tx_stalled");
  CHECK(values[series_index(NicSeries::malformed)] == 9);
}

}  // namespace
}  // namespace paceline::telemetry
