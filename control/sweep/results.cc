#include "control/sweep/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/experiment/analysis/statistics.h"
#include "control/experiment/design.h"
#include "control/experiment/report/value_text.h"
#include "control/experiment/text/json_writer.h"
#include "control/experiment/text/number_text.h"

namespace paceline::sweep {

namespace {

using experiment::JsonWriter;
using experiment::Metric;
using experiment::MetricSpec;
using experiment::RunStatus;

constexpr double kConfidence = 0.95;
constexpr std::size_t kPiece = 1 << 16;  // text is written in pieces of about so many bytes

void write_head(JsonWriter& json, const Results& results, const std::vector<Metric>& metrics) {
  const Plan& plan = results.plan;
  json.member("schema", std::uint64_t{kSweepSchema});
  json.member("kind", kSweepKind);
  json.member("version", std::string_view(results.version));
  json.member("name", std::string_view(plan.name));
  json.member("command", std::string_view(results.command));
  json.member("seed", plan.seed);
  json.member("confidence", kConfidence);
  std::vector<std::uint64_t> seeds;
  for (std::uint32_t r = 0; r < plan.repetitions; ++r) {
    seeds.push_back(experiment::repetition_seed(plan.seed, r));
  }
  json.list("seeds", seeds);
  json.list("keys", plan.keys);
  json.member("scenario", std::string_view(plan.text));
  json.list("set", plan.overrides);
  json.key("metrics");
  json.begin_array();
  const std::vector<Metric> headlines = headlines_of(results);
  for (const Metric metric : metrics) {
    const MetricSpec& spec = spec_of(metric);
    json.begin_object(JsonWriter::Layout::compact);
    json.member("name", spec.name);
    json.member("label", spec.label);
    json.member("unit", to_text(spec.unit));
    json.member("better", to_text(spec.better));
    json.member("headline",
                std::find(headlines.begin(), headlines.end(), metric) != headlines.end());
    json.member("meaning", spec.meaning);
    json.end_object();
  }
  json.end_array();
}

void write_point(JsonWriter& json, const Results& results, std::size_t point,
                 const std::vector<Metric>& metrics) {
  const Plan& plan = results.plan;
  json.begin_object(JsonWriter::Layout::compact);
  json.key("settings");
  json.begin_object();
  for (const Setting& setting : plan.point(point)) {
    json.member(setting.key, setting.word);
  }
  json.end_object();
  RunStatus worst = RunStatus::ok;
  std::string reason;
  std::vector<std::string> hashes;
  std::uint64_t messages = 0;
  for (std::uint32_t r = 0; r < plan.repetitions; ++r) {
    const Run& run = results.run(point, r);
    if (run.status > worst) {
      worst = run.status;
      const auto found = results.reasons.find(r * plan.points() + point);
      if (found != results.reasons.end()) reason = found->second;
    }
    messages += run.messages;
    hashes.push_back(fmt::format("0x{:016x}", run.trace_hash));
  }
  json.member("status", to_text(worst));
  if (worst != RunStatus::ok) json.member("reason", std::string_view(reason));
  json.member("messages", messages);
  json.list("trace_hashes", hashes);
  json.key("metrics");
  json.begin_object();
  for (const Metric metric : metrics) {
    const PointValue value = value_of(results, point, metric);
    if (std::isnan(value.mean)) continue;
    json.key(spec_of(metric).name);
    json.begin_array();
    for (const double figure : {value.mean, value.low, value.high}) {
      json.value(experiment::rounded(figure, experiment::kFigureDigits));
    }
    json.end_array();
  }
  json.end_object();
  json.end_object();
}

// RFC 4180: quoted only if needed.
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

// To three digits, with the unit: "1.21 MB"; "-" for NaN.
std::string value_words(double value, const MetricSpec& spec) {
  if (std::isnan(value)) return "-";
  const experiment::DisplayUnit unit = experiment::display_unit(spec.unit, std::abs(value));
  return experiment::with_unit(experiment::significant(value * unit.factor, 3),
                               std::string(unit.name));
}

}  // namespace

PointValue value_of(const Results& results, std::size_t point, Metric metric) {
  std::vector<double> values;
  for (std::uint32_t r = 0; r < results.plan.repetitions; ++r) {
    const Run& run = results.run(point, r);
    const bool counts = run.status == RunStatus::ok ||
                        (run.status == RunStatus::unfinished && !spec_of(metric).needs_completion);
    if (counts && !std::isnan(run.metrics[metric])) values.push_back(run.metrics[metric]);
  }
  PointValue out{experiment::kUndefined, experiment::kUndefined, experiment::kUndefined};
  if (values.size() == 1) out.mean = values.front();
  if (values.size() < 2) return out;
  const experiment::MeanEstimate estimate = experiment::t_interval(values, kConfidence);
  return {estimate.mean, estimate.interval.low, estimate.interval.high};
}

std::vector<Metric> metrics_of(const Results& results) {
  std::vector<Metric> out;
  for (const MetricSpec& spec : experiment::metric_table()) {
    const bool applies = std::any_of(results.runs.begin(), results.runs.end(), [&](const Run& run) {
      return !std::isnan(run.metrics[spec.metric]);
    });
    if (applies) out.push_back(spec.metric);
  }
  return out;
}

std::vector<Metric> headlines_of(const Results& results) {
  std::vector<Metric> out;
  for (const Metric metric : metrics_of(results)) {
    const MetricSpec& spec = spec_of(metric);
    if (spec.headline && spec.better != experiment::Better::neither) out.push_back(metric);
  }
  return out;
}

void write_json(const Results& results, const Write& write) {
  const std::vector<Metric> metrics = metrics_of(results);
  JsonWriter json;
  json.begin_object();
  write_head(json, results, metrics);
  json.key("points");
  json.begin_array();
  for (std::size_t point = 0; point < results.plan.points(); ++point) {
    write_point(json, results, point, metrics);
    if (json.size() > kPiece) write(json.take());
  }
  json.end_array();
  json.end_object();
  write(std::move(json).finish());
}

void write_csv(const Results& results, const Write& write) {
  const Plan& plan = results.plan;
  const std::vector<Metric> metrics = metrics_of(results);
  std::string text;
  for (const std::string& key : plan.keys) text += csv_field(key) + ",";
  text += "repetition,seed,status,messages,messages_completed";
  for (const Metric metric : metrics) text += fmt::format(",{}", spec_of(metric).name);
  text += "\n";
  for (std::size_t point = 0; point < plan.points(); ++point) {
    std::string settings;
    const std::vector<Setting> given = plan.point(point);
    for (const std::string& key : plan.keys) {
      const auto found = std::find_if(given.begin(), given.end(),
                                      [&](const Setting& setting) { return setting.key == key; });
      settings += (found == given.end() ? "" : csv_field(found->word)) + ",";
    }
    for (std::uint32_t r = 0; r < plan.repetitions; ++r) {
      const Run& run = results.run(point, r);
      text +=
          fmt::format("{}{},{},{},{},{}", settings, r, experiment::repetition_seed(plan.seed, r),
                      to_text(run.status), run.messages, run.completed);
      for (const Metric metric : metrics) {
        const double value = run.metrics[metric];
        text += "," + (std::isnan(value) ? "" : experiment::number_text(value));
      }
      text += "\n";
    }
    if (text.size() > kPiece) {
      write(text);
      text.clear();
    }
  }
  write(text);
}

std::vector<std::string> table_columns(const Results& results) {
  std::vector<std::string> columns = results.plan.keys;
  for (const Metric metric : headlines_of(results)) {
    columns.emplace_back(spec_of(metric).label);
  }
  return columns;
}

std::vector<std::string> table_row(const Results& results, std::size_t point) {
  std::vector<std::string> row;
  const std::vector<Setting> given = results.plan.point(point);
  for (const std::string& key : results.plan.keys) {
    const auto found = std::find_if(given.begin(), given.end(),
                                    [&](const Setting& setting) { return setting.key == key; });
    row.emplace_back(found == given.end() ? "-" : found->word);
  }
  for (const Metric metric : headlines_of(results)) {
    row.push_back(value_words(value_of(results, point, metric).mean, spec_of(metric)));
  }
  return row;
}

}  // namespace paceline::sweep
