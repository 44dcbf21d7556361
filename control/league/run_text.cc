// Writes and reads runs as lines of JSON.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "control/experiment/text/json_reader.h"
#include "control/experiment/text/json_writer.h"
#include "control/league/cell.h"

namespace paceline::league {

namespace {

using experiment::JsonWriter;
using Json = nlohmann::json;

double number_or_nan(const Json& value) {
  return value.is_number() ? value.get<double>() : Summary::kNone;
}

// Called inside the try block of parse_run_line: members may be missing or have a wrong type.
Course read_course(const Json& object) {
  Course course;
  course.interval_us = object.at("interval_us").get<double>();
  course.end_us = object.at("end_us").get<double>();
  course.queue_bytes = object.at("queue_bytes").get<std::vector<std::uint64_t>>();
  course.rate_gbps = object.at("rate_gbps").get<std::vector<double>>();
  if (object.contains("paused_us")) {
    course.paused_us = object.at("paused_us").get<std::vector<double>>();
  }
  return course;
}

experiment::RunStatus read_status(const std::string& text) {
  using experiment::RunStatus;
  for (const RunStatus status : {RunStatus::ok, RunStatus::unfinished}) {
    if (text == to_text(status)) return status;
  }
  return RunStatus::failed;
}

std::uint64_t read_hex(const Json& object, const char* key) {
  return std::stoull(object.at(key).get<std::string>(), nullptr, 16);
}

}  // namespace

void write_course(JsonWriter& json, const Course& course) {
  json.key("course");
  json.begin_object(JsonWriter::Layout::compact);
  json.member("interval_us", course.interval_us);
  json.member("end_us", course.end_us);
  json.list("queue_bytes", course.queue_bytes);
  json.list("rate_gbps", course.rate_gbps);
  if (!course.paused_us.empty()) json.list("paused_us", course.paused_us);
  json.end_object();
}

std::string run_line(const Run& run) {
  JsonWriter json;
  json.begin_object(JsonWriter::Layout::compact);
  json.member("scenario", std::string_view(run.scenario));
  json.member("entry", std::string_view(run.entry));
  json.member("repetition", std::uint64_t{run.repetition});
  json.member("seed", run.seed);
  json.member("status", to_text(run.status));
  json.member("reason", std::string_view(run.reason));
  json.member("messages", run.messages);
  json.member("trace_hash", std::string_view(fmt::format("{:016x}", run.trace_hash)));
  json.key("measures");
  json.begin_object();
  for (const MeasureSpec& spec : measure_table())
    json.member(spec.name, run.measures[spec.measure]);
  json.end_object();
  if (!run.course.queue_bytes.empty()) write_course(json, run.course);
  json.end_object();
  std::string text = std::move(json).finish();
  text.pop_back();
  return text;
}

std::optional<Run> parse_run_line(std::string_view line) {
  const Json root = experiment::JsonReader::parse(line);
  if (!root.is_object()) return std::nullopt;
  try {
    Run run;
    run.scenario = root.at("scenario").get<std::string>();
    run.entry = root.at("entry").get<std::string>();
    run.repetition = root.at("repetition").get<std::uint32_t>();
    run.seed = root.at("seed").get<std::uint64_t>();
    run.status = read_status(root.at("status").get<std::string>());
    run.reason = root.at("reason").get<std::string>();
    run.messages = root.at("messages").get<std::uint64_t>();
    run.trace_hash = read_hex(root, "trace_hash");
    const Json& measures = root.at("measures");
    for (const MeasureSpec& spec : measure_table()) {
      run.measures[spec.measure] = number_or_nan(measures.at(std::string(spec.name)));
    }
    if (root.contains("course")) run.course = read_course(root.at("course"));
    return run;
  } catch (const std::exception&) {  // another version or program wrote it: the run is repeated
    return std::nullopt;
  }
}

}  // namespace paceline::league
