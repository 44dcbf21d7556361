#include "control/daemon/metrics_text.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <string_view>

#include "control/daemon/message_series.h"

namespace paceline::daemon {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using telemetry::SeriesKind;

namespace {

constexpr std::string_view kThousandths = "1/1000";

struct OwnMetric {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const DaemonFigures&);
};

constexpr std::array<OwnMetric, 6> kOwn{{
    {"paceline_up", "1: the service answers", MetricType::Gauge,
     [](const DaemonFigures& f) { return f.connected ? 1.0 : 0.0; }},
    {"paceline_service_starts_total", "times the service was started by this daemon",
     MetricType::Counter,
     [](const DaemonFigures& f) { return static_cast<double>(f.service_starts); }},
    {"paceline_daemon_samples_total", "looks at the telemetry segment", MetricType::Counter,
     [](const DaemonFigures& f) { return static_cast<double>(f.samples); }},
    {"paceline_daemon_store_trouble", "1: what must last cannot be written", MetricType::Gauge,
     [](const DaemonFigures& f) { return f.store_trouble ? 1.0 : 0.0; }},
    {"paceline_daemon_api_requests_total", "requests to the API", MetricType::Counter,
     [](const DaemonFigures& f) { return static_cast<double>(f.api_requests); }},
    {"paceline_daemon_history_bytes", "memory of the histories", MetricType::Gauge,
     [](const DaemonFigures& f) { return static_cast<double>(f.history_bytes); }},
}};

struct NicMetric {
  const char* name;
  const char* help;
  double (*value)(const Sampler&, std::size_t nic);
};

constexpr std::array<NicMetric, 6> kOfNic{{
    {"paceline_telemetry_fresh", "1: its figures are those of now",
     [](const Sampler& s, std::size_t nic) { return s.fresh(nic) ? 1.0 : 0.0; }},
    {"paceline_parameters_generation", "grows with each change of parameters",
     [](const Sampler& s, std::size_t nic) {
       return static_cast<double>(s.latest(nic).body.generation);
     }},
    {"paceline_trial_arm", "arm in force; 0: the champion",
     [](const Sampler& s, std::size_t nic) { return static_cast<double>(s.latest(nic).body.arm); }},
    {"paceline_trial_epoch", "block of an experiment in force; 0: none",
     [](const Sampler& s, std::size_t nic) {
       return static_cast<double>(s.latest(nic).body.epoch);
     }},
    {"paceline_guard_tripped", "1: a trip of the guard is latched",
     [](const Sampler& s, std::size_t nic) { return s.latest(nic).body.guard != 0 ? 1.0 : 0.0; }},
    {"paceline_link_bits_per_second", "rate of the link",
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

}  // namespace

std::string metric_name(const SeriesInfo& series) {
  return "paceline_" + series.name + (series.kind == SeriesKind::counter ? "_total" : "");
}

std::vector<std::string> metric_names(std::span<const SeriesInfo> series) {
  std::vector<std::string> out;
  for (const OwnMetric& own : kOwn) out.emplace_back(own.name);
  for (const NicMetric& nic : kOfNic) out.emplace_back(nic.name);
  for (const SeriesInfo& s : series) out.push_back(metric_name(s));
  return out;
}

std::string metrics_text(const Sampler& sampler, const DaemonFigures& figures) {
  std::vector<MetricFamily> families;
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
    MetricFamily family{
        metric_name(series), "in " + (thousandths ? std::string("1") : series.unit), type, {}};
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
