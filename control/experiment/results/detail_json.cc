#include "control/experiment/results/detail_json.h"

#include <fmt/format.h>

namespace paceline::experiment {
namespace {

using Json = JsonReader::Json;
using Layout = JsonWriter::Layout;
using std::uint64_t;

void write_series(JsonWriter& json, const TimeSeries& series) {
  json.key("series");
  json.begin_object();
  json.member("repetition", uint64_t{series.repetition});
  json.member("seed", series.seed);
  json.member("interval_ps", static_cast<uint64_t>(series.interval.count));
  json.member("looks", uint64_t{series.looks});
  json.member("end_ps", static_cast<uint64_t>(series.end.count));
  for (const SignalSpec& spec : signal_table()) json.list(spec.name, series[spec.signal]);
  json.end_object();
}

void write_arm(JsonWriter& json, const ArmFigures& arm) {
  json.begin_object(Layout::compact);
  json.member("scenario", std::string_view(arm.scenario));
  json.member("arm", std::string_view(arm.arm));
  json.member("runs", uint64_t{arm.runs});
  json.member("messages", arm.messages);
  json.member("outstanding", arm.outstanding);
  std::vector<uint64_t> values, counts;
  for (const CdfPoint& point : arm.fct_ns) {
    values.push_back(point.value);
    counts.push_back(point.count);
  }
  json.list("fct_ns", values);
  json.list("fct_messages", counts);
  json.key("slowdown_by_size");
  json.begin_array();
  for (const SizeSlowdown& bin : arm.slowdown) {
    json.begin_object();
    json.member("up_to_bytes", bin.up_to_bytes);
    json.member("messages", bin.messages);
    json.member("p50", bin.p50);
    json.member("p95", bin.p95);
    json.member("p99", bin.p99);
    json.member("max", bin.max);
    json.end_object();
  }
  json.end_array();
  if (arm.series.size() != 0) write_series(json, arm.series);
  json.end_object();
}

std::vector<uint64_t> read_numbers(JsonReader& in, const Json& object, const std::string& path,
                                   std::string_view key) {
  const std::string name(key);
  std::vector<uint64_t> values;
  for (const Json& item : in.array(object, path, name.c_str())) {
    if (!item.is_number_unsigned()) {
      in.error(fmt::format("{}.{}[{}]", path, key, values.size()),
               fmt::format("expected a whole number of at least 0, found {}",
                           JsonReader::kind_of(item)));
      break;
    }
    values.push_back(item.get<uint64_t>());
  }
  return values;
}

Picos read_picos(JsonReader& in, const Json& object, const std::string& path, const char* key) {
  return {static_cast<std::int64_t>(
      in.whole(object, path, key, 1, std::numeric_limits<std::int64_t>::max()))};
}

TimeSeries read_series(JsonReader& in, const Json& arm, const std::string& owner,
                       const AnalysisPlan& plan) {
  TimeSeries series;
  if (!arm.contains("series")) return series;
  const std::string path = owner + ".series";
  const Json& object = in.object(arm, owner, "series");
  const std::size_t before = in.errors().size();
  series.repetition =
      static_cast<std::uint32_t>(in.whole(object, path, "repetition", 0, plan.repetitions - 1));
  series.seed = in.whole(object, path, "seed");
  series.interval = read_picos(in, object, path, "interval_ps");
  series.looks = static_cast<std::uint32_t>(in.whole(object, path, "looks", 1, 1'000'000));
  series.end = read_picos(in, object, path, "end_ps");
  if (in.errors().size() != before) return series;
  const auto intervals =
      static_cast<uint64_t>((series.end.count + series.interval.count - 1) / series.interval.count);
  for (const SignalSpec& spec : signal_table()) {
    auto& values = series.values[static_cast<std::size_t>(spec.signal)];
    const std::size_t errors = in.errors().size();
    values = read_numbers(in, object, path, spec.name);
    if (in.errors().size() == errors && values.size() != intervals) {
      in.error(fmt::format("{}.{}", path, spec.name),
               fmt::format("{} values, but end_ps = {} and interval_ps = {} make {}", values.size(),
                           series.end.count, series.interval.count, intervals));
    }
  }
  return series;
}

SizeSlowdown read_bin(JsonReader& in, const Json& item, const std::string& path) {
  SizeSlowdown bin;
  bin.up_to_bytes = in.whole(item, path, "up_to_bytes", 1);
  bin.messages = in.whole(item, path, "messages", 1);
  bin.p50 = in.number(item, path, "p50");
  bin.p95 = in.number(item, path, "p95");
  bin.p99 = in.number(item, path, "p99");
  bin.max = in.number(item, path, "max");
  return bin;
}

ArmFigures read_arm(JsonReader& in, const Json& item, const std::string& path,
                    const AnalysisPlan& plan) {
  ArmFigures arm;
  arm.scenario = in.one_of(item, path, "scenario", plan.scenarios);
  arm.arm = in.one_of(item, path, "arm", plan.arms);
  arm.runs = static_cast<std::uint32_t>(in.whole(item, path, "runs", 0, plan.repetitions));
  arm.messages = in.whole(item, path, "messages");
  arm.outstanding = in.whole(item, path, "outstanding");
  const std::vector<uint64_t> values = read_numbers(in, item, path, "fct_ns");
  const std::vector<uint64_t> counts = read_numbers(in, item, path, "fct_messages");
  if (values.size() != counts.size()) {
    in.error(path + ".fct_messages",
             fmt::format("{} counts for {} times", counts.size(), values.size()));
    return arm;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0 && (values[i] < values[i - 1] || counts[i] <= counts[i - 1])) {
      in.error(fmt::format("{}.fct_ns[{}]", path, i), "a distribution must ascend");
      return arm;
    }
    arm.fct_ns.push_back({values[i], counts[i]});
  }
  for (const Json& bin : in.array(item, path, "slowdown_by_size")) {
    const std::string where = fmt::format("{}.slowdown_by_size[{}]", path, arm.slowdown.size());
    if (!bin.is_object()) {
      in.error(where, fmt::format("expected an object, found {}", JsonReader::kind_of(bin)));
      return arm;
    }
    arm.slowdown.push_back(read_bin(in, bin, where));
  }
  arm.series = read_series(in, item, path, plan);
  return arm;
}

}  // namespace

void write_detail(JsonWriter& json, const Detail& detail) {
  json.key("detail");
  json.begin_object();
  json.member("file", std::string_view(detail.file));
  json.list("set", detail.overrides);
  json.key("arms");
  json.begin_array();
  for (const ArmFigures& arm : detail.arms) write_arm(json, arm);
  json.end_array();
  json.end_object();
}

Detail read_detail(JsonReader& in, const Json& root, const AnalysisPlan& plan) {
  Detail detail;
  if (!root.contains("detail")) return detail;
  const Json& object = in.object(root, "", "detail");
  const std::string path = "detail";
  detail.file = in.string(object, path, "file");
  for (const Json& item : in.array(object, path, "set")) {
    if (!item.is_string()) {
      in.error(fmt::format("{}.set[{}]", path, detail.overrides.size()),
               fmt::format("expected a string, found {}", JsonReader::kind_of(item)));
      break;
    }
    detail.overrides.push_back(item.get<std::string>());
  }
  for (const Json& item : in.array(object, path, "arms")) {
    const std::string where = fmt::format("{}.arms[{}]", path, detail.arms.size());
    if (!item.is_object()) {
      in.error(where, fmt::format("expected an object, found {}", JsonReader::kind_of(item)));
      break;
    }
    detail.arms.push_back(read_arm(in, item, where, plan));
    const ArmFigures& arm = detail.arms.back();
    if (detail.find(arm.scenario, arm.arm) != &arm && !arm.scenario.empty()) {
      in.error(where,
               fmt::format("a second entry for scenario '{}', arm '{}'", arm.scenario, arm.arm));
    }
  }
  return detail;
}

}  // namespace paceline::experiment
