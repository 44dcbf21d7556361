// The figures of all NICs as Prometheus reads them. A counter `x` of the catalogue is
// `paceline_x_total`, a gauge `paceline_x`, each with the label `nic`; slowdowns are ratios, not
// docs/daemon.md lists the daemon's own metrics.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/daemon/telemetry/sampler.h"

namespace paceline::daemon {

struct DaemonFigures {
  bool connected = false;
  std::uint64_t service_starts = 0;
  std::uint64_t samples = 0;
  bool store_trouble = false;
  std::uint64_t api_requests = 0;
  std::uint64_t history_bytes = 0;
  std::string build;  // "0.2.0 (6b81f6c40d5e)", or without the commit
};

std::string metric_name(const SeriesInfo& series);
// Every name there is with these series.
std::vector<std::string> metric_names(std::span<const SeriesInfo> series);

std::string metrics_text(const Sampler& sampler, const DaemonFigures& figures);

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace paceline::daemon
