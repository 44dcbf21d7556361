#include "control/daemon/telemetry/metrics_text.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "control/daemon/telemetry/message_series.h"
#include "dataplane/telemetry/series.h"

namespace paceline::daemon {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using telemetry::SeriesKind;

namespace {

constexpr std::string_view kThousandths = "1/1000";
constexpr const char* kBuildInfo = "paceline_build_info";

struct OwnMetric {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const DaemonFigures&);
};

constexpr std::array<OwnMetric, 6> kOwn{{
    {"paceline_up", "1 while the service of this host answers the daemon, else 0",
     MetricType::Gauge, [](const DaemonFigures& f) { return f.connected ? 1.0 : 0.0; }},
    {"paceline_service_starts_total", "times that this daemon has started the service",
     MetricType::Counter,
     [](const DaemonFigures& f) { return static_cast<double>(f.service_starts); }},
    {"paceline_daemon_samples_total", "looks at the telemetry segment of the service",
     MetricType::Counter, [](const DaemonFigures& f) { return static_cast<double>(f.samples); }},
    {"paceline_daemon_store_trouble", "1 while the journal cannot be written, else 0",
     MetricType::Gauge, [](const DaemonFigures& f) { return f.store_trouble ? 1.0 : 0.0; }},
    {"paceline_daemon_api_requests_total", "requests to the API of the daemon, of all kinds",
     MetricType::Counter,
     [](const DaemonFigures& f) { return static_cast<double>(f.api_requests); }},
    {"paceline_daemon_history_bytes", "bytes of memory that the histories of all NICs take",
     MetricType::Gauge,
     [](const DaemonFigures& f) { return static_cast<double>(f.history_bytes); }},
}};

struct NicMetric {
  const char* name;
  const char* help;
  double (*value)(const Sampler&, std::size_t nic);
};

constexpr std::array<NicMetric, 6> kOfNic{{
    {"paceline_telemetry_fresh",
     "1 while the telemetry of the NIC is that of now; 0: stalled, torn or lost",
     [](const Sampler& s, std::size_t nic) { return s.fresh(nic) ? 1.0 : 0.0; }},
    {"paceline_parameters_generation",
     "number of the congestion-control parameters in force; grows with each change",
     [](const Sampler& s, std::size_t nic) {
       return static_cast<double>(s.latest(nic).body.generation);
     }},
    {"paceline_trial_arm", "arm of a trial that is in force; 0: the champion",
     [](const Sampler& s, std::size_t nic) { return static_cast<double>(s.latest(nic).body.arm); }},
    {"paceline_trial_epoch", "block of an experiment that is in force; 0: none",
     [](const Sampler& s, std::size_t nic) {
       return static_cast<double>(s.latest(nic).body.epoch);
     }},
    {"paceline_guard_tripped",
     "1 while a trip of the guard is latched: no trial starts (paceline guard)",
     [](const Sampler& s, std::size_t nic) { return s.latest(nic).body.guard != 0 ? 1.0 : 0.0; }},
    {"paceline_link_bits_per_second", "rate of the link of the NIC; 0: unlimited",
     [](const Sampler& s, std::size_t nic) { return static_cast<double>(s.nics()[nic].rate_bps); }},
}};

void put(ClientMetric& metric, MetricType type, double value) {
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

ClientMetric of_nic(const Sampler& sampler, std::size_t nic, MetricType type, double value) {
  ClientMetric metric;
  metric.label = {{"nic", sampler.nics()[nic].name}};
  put(metric, type, value);
  return metric;
}

// Meaning and unit of a series. A service of a later version may have series that are unknown here.
std::string help_of(const SeriesInfo& series) {
  std::string meaning = message_series_meaning(series.name);
  for (const telemetry::Series& known : telemetry::nic_series()) {
    if (known.name == series.name) meaning = known.meaning;
  }
  if (meaning.empty()) meaning = "a series of the service that this daemon does not know";
  const bool number = series.unit == "1" || series.unit == kThousandths;
  return number ? meaning : meaning + " (" + series.unit + ")";
}

// By convention the value is always 1; the information is in the labels.
MetricFamily build_info(const std::string& build) {
  MetricFamily family{
      kBuildInfo, "version and commit that the daemon was built from", MetricType::Gauge, {}};
  const std::size_t space = std::min(build.find(' '), build.size());
  std::string commit = build.substr(space);
  std::erase_if(commit, [](char c) { return c == ' ' || c == '(' || c == ')'; });
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = {{"version", build.substr(0, space)}, {"commit", commit}};
  metric.gauge.value = 1;
  return family;
}

}  // namespace

std::string metric_name(const SeriesInfo& series) {
  return "paceline_" + series.name + (series.kind == SeriesKind::counter ? "_total" : "");
}

std::vector<std::string> metric_names(std::span<const SeriesInfo> series) {
  std::vector<std::string> out;
  out.emplace_back(kBuildInfo);
  for (const OwnMetric& own : kOwn) out.emplace_back(own.name);
  for (const NicMetric& nic : kOfNic) out.emplace_back(nic.name);
  for (const SeriesInfo& s : series) out.push_back(metric_name(s));
  return out;
}

std::string metrics_text(const Sampler& sampler, const DaemonFigures& figures) {
  std::vector<MetricFamily> families{build_info(figures.build)};
  for (const OwnMetric& own : kOwn) {
    MetricFamily family{own.name, own.help, own.type, {}};
    put(family.metric.emplace_back(), own.type, own.value(figures));
    families.push_back(std::move(family));
  }
  for (const NicMetric& entry : kOfNic) {
    MetricFamily family{entry.name, entry.help, MetricType::Gauge, {}};
    for (std::size_t nic = 0; nic < sampler.nics().size(); ++nic) {
      family.metric.push_back(of_nic(sampler, nic, MetricType::Gauge, entry.value(sampler, nic)));
    }
    families.push_back(std::move(family));
  }
  for (std::size_t i = 0; i < sampler.series().size(); ++i) {
    const SeriesInfo& series = sampler.series()[i];
    const MetricType type =
        series.kind == SeriesKind::counter ? MetricType::Counter : MetricType::Gauge;
    const bool thousandths = series.unit == kThousandths;
    MetricFamily family{metric_name(series), help_of(series), type, {}};
    for (std::size_t nic = 0; nic < sampler.nics().size(); ++nic) {
      const auto value = static_cast<double>(sampler.values(nic)[i]);
      family.metric.push_back(
          of_nic(sampler, nic, type, thousandths ? value / kSlowdownUnit : value));
    }
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace paceline::daemon
