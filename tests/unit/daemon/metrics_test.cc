// What Prometheus gets, and that the dashboard and the alerts ask for nothing else.
#include "control/daemon/telemetry/metrics_text.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "control/daemon/telemetry/message_series.h"
#include "dataplane/telemetry/series.h"
#include "tests/unit/daemon/fake_segment.h"

namespace paceline::daemon {

namespace {

std::string file_text(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(std::string(PACELINE_SOURCE_DIR) + "/" + name).rdbuf();
  return text.str();
}

std::set<std::string> all_metric_names() {
  std::vector<SeriesInfo> series;
  for (const telemetry::Series& s : telemetry::nic_series()) {
    series.push_back({std::string(s.name), std::string(s.unit), s.kind});
  }
  for (SeriesInfo& added : message_series()) series.push_back(std::move(added));
  const std::vector<std::string> names = metric_names(series);
  const std::set<std::string> unique(names.begin(), names.end());
  REQUIRE(unique.size() == names.size());
  return unique;
}

}  // namespace

TEST_CASE("dashboard and alerts ask for metrics that there are", "[metrics]") {
  const std::set<std::string> names = all_metric_names();
  for (const char* const file :
       {"configs/grafana/paceline.json", "configs/prometheus/alerts.yml"}) {
    const std::string text = file_text(file);
    const std::regex name("paceline_[a-z0-9_]+");
    std::size_t found = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
      ++found;
      INFO(file << ": " << at->str());
      CHECK(names.contains(at->str()));
    }
    CHECK(found >= 9);
  }
}

TEST_CASE("each series is told with its name, unit and NIC", "[metrics]") {
  FakeSegment segment({"h0", "h1"});
  Sampler sampler({});
  REQUIRE(sampler.open(segment.bytes()).empty());
  segment.values[*sampler.find_series("tx_data_bytes")] = 4321;
  segment.write(1);
  sampler.sample(1'700'000'000'000'000'000);
  DaemonFigures figures;
  figures.connected = true;
  figures.service_starts = 3;
  const std::string text = metrics_text(sampler, figures);
  const auto has = [&](std::string_view line) { return text.find(line) != std::string::npos; };
  CHECK(has("# TYPE paceline_tx_data_bytes_total counter"));
  CHECK(has("paceline_tx_data_bytes_total{nic=\"h1\"} 4321"));
  CHECK(has("paceline_tx_data_bytes_total{nic=\"h0\"} 0"));
  CHECK(has("# TYPE paceline_inflight_bytes gauge"));
  CHECK(has("paceline_up 1"));
  CHECK(has("paceline_service_starts_total 3"));
  for (const std::string& name : all_metric_names()) {
    INFO(name);
    CHECK(has("# TYPE " + name + " "));
  }
}

TEST_CASE("every metric says in words of its own what it is", "[metrics]") {
  FakeSegment segment({"h0"});
  Sampler sampler({});
  REQUIRE(sampler.open(segment.bytes()).empty());
  DaemonFigures figures;
  figures.build = "1.2.3 (0123abcd-dirty)";
  std::istringstream text(metrics_text(sampler, figures));
  std::set<std::string> helps;
  std::size_t lines = 0;
  bool told = false;
  for (std::string line; std::getline(text, line);) {
    told = told || line == "paceline_build_info{version=\"1.2.3\",commit=\"0123abcd-dirty\"} 1" ||
           line == "paceline_build_info{commit=\"0123abcd-dirty\",version=\"1.2.3\"} 1";
    if (!line.starts_with("# HELP ")) continue;
    ++lines;
    const std::string help = line.substr(line.find(' ', 7) + 1);
    INFO(line);
    CHECK(help.size() >= 12);
    CHECK(std::count(help.begin(), help.end(), ' ') >= 2);
    CHECK_FALSE(help.starts_with("in "));
    CHECK(help.find("the same,") == std::string::npos);
    CHECK(help.find("of these") == std::string::npos);
    CHECK(help.find("does not know") == std::string::npos);
    CHECK(helps.insert(help).second);
  }
  CHECK(told);
  CHECK(lines == all_metric_names().size());
}

}  // namespace paceline::daemon
