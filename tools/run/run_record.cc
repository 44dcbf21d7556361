#include "tools/run/run_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <nlohmann/json.hpp>

namespace paceline::tools {

namespace {

using experiment::RunStatus;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// [least, greatest, lowest value of a bucket, its count, ...]
std::string histogram_text(const Histogram& values) {
  std::vector<std::uint64_t> numbers;
  if (!values.empty()) numbers = {values.min(), values.max()};
  values.for_each_bucket([&](std::uint64_t lowest, std::uint64_t, std::uint64_t count) {
    numbers.push_back(lowest);
    numbers.push_back(count);
  });
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

Histogram histogram_of(const nlohmann::json& json) {
  const auto numbers = json.get<std::vector<std::uint64_t>>();
  Histogram values;
  if (numbers.empty()) return values;
  if (numbers.size() < 4 || numbers.size() % 2 != 0) throw std::out_of_range("histogram");
  const std::uint64_t min = numbers[0];
  const std::uint64_t max = numbers[1];
  for (std::size_t i = 2; i < numbers.size(); i += 2) {
    const std::size_t bucket = Histogram::bucket_of(numbers[i]);
    std::uint64_t count = numbers[i + 1];
    // The ends are known exactly: one of each, the rest of their buckets beside them.
    if (bucket == Histogram::bucket_of(max) && max != min && count != 0) {
      values.record(max);
      --count;
    }
    const bool first = bucket == Histogram::bucket_of(min);
    values.record(first ? min : Histogram::lowest_of(bucket), count);
  }
  return values;
}

RunStatus status_named(const std::string& text) {
  for (const RunStatus status : {RunStatus::ok, RunStatus::unfinished, RunStatus::failed}) {
    if (text == to_text(status)) return status;
  }
  throw std::out_of_range("status");
}

}  // namespace

std::string exact_number_text(double value) {
  if (std::isnan(value)) return "null";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  if (value == 0 && std::signbit(value)) return "-0.0";
  return fmt::format("{}", value);
}

std::string json_text_of(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

double exact_number_of(const nlohmann::json& value) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return kInfinity;
  if (value == "-inf") return -kInfinity;
  return value.get<double>();
}

std::string result_text(const experiment::RunResult& result) {
  std::string metrics;
  for (const experiment::MetricSpec& spec : experiment::metric_table()) {
    if (!metrics.empty()) metrics += ',';
    metrics += exact_number_text(result.metrics[spec.metric]);
  }
  return fmt::format(
      R"({{"status":"{}","reason":{},"metrics":[{}],"started":{},"completed":{},"hops":{},)"
      R"("events":{},"simulated_ps":{},"trace_hash":{}}})",
      to_text(result.status), json_text_of(result.reason), metrics, result.messages_started,
      result.messages_completed, result.hops, result.events, result.simulated.count,
      result.trace_hash);
}

experiment::RunResult result_of(const nlohmann::json& json) {
  experiment::RunResult out;
  out.status = status_named(json.at("status").get<std::string>());
  out.reason = json.at("reason").get<std::string>();
  const nlohmann::json& metrics = json.at("metrics");
  for (const experiment::MetricSpec& spec : experiment::metric_table()) {
    out.metrics[spec.metric] = exact_number_of(metrics.at(index_of(spec.metric)));
  }
  out.messages_started = json.at("started").get<std::uint64_t>();
  out.messages_completed = json.at("completed").get<std::uint64_t>();
  out.hops = json.at("hops").get<std::uint64_t>();
  out.events = json.at("events").get<std::uint64_t>();
  out.simulated = Picos{json.at("simulated_ps").get<std::int64_t>()};
  out.trace_hash = json.at("trace_hash").get<std::uint64_t>();
  return out;
}

std::string distribution_text(const experiment::Distribution& distribution) {
  std::string sizes;
  for (const auto& [octave, values] : distribution.slowdown) {
    sizes += fmt::format("{}[{},{}]", sizes.empty() ? "" : ",", octave, histogram_text(values));
  }
  return fmt::format(R"({{"runs":{},"outstanding":{},"fct_ns":{},"slowdown":[{}]}})",
                     distribution.runs, distribution.outstanding,
                     histogram_text(distribution.fct_ns), sizes);
}

experiment::Distribution distribution_from(const nlohmann::json& json) {
  experiment::Distribution out;
  out.runs = json.at("runs").get<std::uint32_t>();
  out.outstanding = json.at("outstanding").get<std::uint64_t>();
  out.fct_ns = histogram_of(json.at("fct_ns"));
  for (const nlohmann::json& size : json.at("slowdown")) {
    out.slowdown[size.at(0).get<unsigned>()] = histogram_of(size.at(1));
  }
  return out;
}

std::string series_text(const experiment::TimeSeries& series) {
  std::string values;
  for (const auto& signal : series.values) {
    values += fmt::format("{}[{}]", values.empty() ? "" : ",", fmt::join(signal, ","));
  }
  return fmt::format(R"({{"interval_ps":{},"looks":{},"end_ps":{},"values":[{}]}})",
                     series.interval.count, series.looks, series.end.count, values);
}

experiment::TimeSeries series_of(const nlohmann::json& json) {
  experiment::TimeSeries out;
  out.interval = Picos{json.at("interval_ps").get<std::int64_t>()};
  out.looks = json.at("looks").get<std::uint32_t>();
  out.end = Picos{json.at("end_ps").get<std::int64_t>()};
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    out.values[i] = json.at("values").at(i).get<std::vector<std::uint64_t>>();
  }
  return out;
}

}  // namespace paceline::tools
