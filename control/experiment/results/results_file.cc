// The writing half; results_reader.cc reads.
#include "control/experiment/results/results_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "control/experiment/results/detail_json.h"
#include "control/experiment/text/json_writer.h"
#include "control/experiment/text/number_text.h"
#include "dataplane/base/hash.h"
#include "dataplane/config/fresh_file.h"

namespace paceline::experiment {
namespace {

using Layout = JsonWriter::Layout;
using std::uint64_t;

double figure(double value) { return rounded(value, kFigureDigits); }

void write_interval(JsonWriter& json, std::string_view key, const Interval& interval) {
  json.list(key, std::array{figure(interval.low), figure(interval.high)});
}

void write_plan(JsonWriter& json, const AnalysisPlan& plan) {
  json.member("experiment", std::string_view(plan.name));
  json.member("seed", plan.seed);
  json.member("repetitions", uint64_t{plan.repetitions});
  json.member("confidence", plan.confidence);
  json.member("resamples", uint64_t{plan.resamples});
  json.list("scenarios", plan.scenarios);
  json.list("arms", plan.arms);
  json.key("summary_plan");
  json.begin_array();
  for (const SummarySpec& summary : plan.summaries) {
    json.begin_object(Layout::compact);
    json.member("label", std::string_view(summary.label));
    json.member("metric", spec_of(summary.metric).name);
    json.list("scenarios", summary.scenarios);
    json.end_object();
  }
  json.end_array();
}

// Every metric, of the occasional ones those that apply to one of the runs.
std::vector<const MetricSpec*> metrics_of(const std::vector<RunResult>& runs) {
  std::vector<const MetricSpec*> metrics;
  for (const MetricSpec& spec : metric_table()) {
    const bool wanted =
        !spec.occasional || std::any_of(runs.begin(), runs.end(), [&spec](const RunResult& run) {
          return !std::isnan(run.metrics[spec.metric]);
        });
    if (wanted) metrics.push_back(&spec);
  }
  return metrics;
}

void write_metric_table(JsonWriter& json, const std::vector<const MetricSpec*>& metrics) {
  json.key("metrics");
  json.begin_array();
  for (const MetricSpec* metric : metrics) {
    const MetricSpec& spec = *metric;
    json.begin_object(Layout::compact);
    json.member("name", spec.name);
    json.member("unit", to_text(spec.unit));
    json.member("better", to_text(spec.better));
    json.member("compared_by", to_text(spec.compare));
    json.member("meaning", spec.meaning);
    json.end_object();
  }
  json.end_array();
}

void write_run(JsonWriter& json, const RunResult& run,
               const std::vector<const MetricSpec*>& metrics) {
  json.begin_object(Layout::compact);
  json.member("scenario", std::string_view(run.scenario));
  json.member("arm", std::string_view(run.arm));
  json.member("repetition", uint64_t{run.repetition});
  json.member("seed", run.seed);
  json.member("status", to_text(run.status));
  json.member("reason", std::string_view(run.reason));
  json.member("messages_started", run.messages_started);
  json.member("messages_completed", run.messages_completed);
  json.member("hops", run.hops);
  json.member("events", run.events);
  json.member("simulated_ps", static_cast<uint64_t>(run.simulated.count));
  json.member("trace_hash", std::string_view(fmt::format("0x{:016x}", run.trace_hash)));
  json.key("metrics");
  json.begin_object();
  for (const MetricSpec* spec : metrics) json.member(spec->name, run.metrics[spec->metric]);
  json.end_object();
  json.end_object();
}

void write_estimate(JsonWriter& json, const PairedEffect& paired) {
  json.member("scale", to_text(paired.scale));
  json.member("baseline_mean", paired.baseline_mean);
  json.member("arm_mean", paired.treatment_mean);
  json.member("effect", figure(paired.effect));
  write_interval(json, "interval", paired.interval);
  json.member("method", to_text(paired.estimate.method));
  json.member("sd", figure(paired.estimate.sd));
  json.member("minimum_detectable", figure(paired.minimum_detectable));
}

void write_effect(JsonWriter& json, const Comparison& comparison, const MetricEffect& effect) {
  json.begin_object(Layout::compact);
  json.member("scenario", std::string_view(comparison.scenario));
  json.member("arm", std::string_view(comparison.arm));
  json.member("metric", spec_of(effect.metric).name);
  json.member("role", to_text(effect.role));
  json.member("pairs", uint64_t{effect.pairs});
  json.member("unfinished_arm", uint64_t{effect.censored_arm});
  json.member("unfinished_baseline", uint64_t{effect.censored_baseline});
  json.member("unfinished_both", uint64_t{effect.censored_both});
  write_estimate(json, effect.paired);
  json.member("by_completion", effect.by_completion);
  json.member("p", figure(effect.p));
  json.member("p_adjusted", figure(effect.p_adjusted));
  json.member("verdict", to_text(effect.verdict));
  json.end_object();
}

std::string text_of(const Results& results, const Analysis& analysis, const Detail& detail) {
  const AnalysisPlan& plan = results.plan;
  JsonWriter json;
  json.begin_object();
  json.member("schema", uint64_t{kResultsSchema});
  json.member("kind", std::string_view(kResultsKind));
  json.member("version", std::string_view(results.version));
  write_plan(json, plan);
  json.member("configuration", std::string_view(results.configuration));
  const std::vector<const MetricSpec*> metrics = metrics_of(results.runs);
  write_metric_table(json, metrics);

  const auto place = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  std::vector<const RunResult*> ordered;
  for (const RunResult& run : results.runs) ordered.push_back(&run);
  std::stable_sort(ordered.begin(), ordered.end(), [&](const RunResult* a, const RunResult* b) {
    const auto key = [&](const RunResult* run) {
      return std::tuple(place(plan.scenarios, run->scenario), place(plan.arms, run->arm),
                        run->repetition);
    };
    return key(a) < key(b);
  });
  json.key("runs");
  json.begin_array();
  for (const RunResult* run : ordered) write_run(json, *run, metrics);
  json.end_array();

  json.key("effects");
  json.begin_array();
  for (const Comparison& comparison : analysis.comparisons) {
    for (const MetricEffect& effect : comparison.effects) write_effect(json, comparison, effect);
  }
  json.end_array();
  json.key("summaries");
  json.begin_array();
  for (const Summary& summary : analysis.summaries) {
    json.begin_object(Layout::compact);
    json.member("label", std::string_view(summary.spec.label));
    json.member("arm", std::string_view(summary.arm));
    json.member("metric", spec_of(summary.spec.metric).name);
    json.member("pairs", uint64_t{summary.pairs});
    write_estimate(json, summary.paired);
    json.member("p", figure(summary.p));
    json.member("verdict", to_text(summary.verdict));
    json.end_object();
  }
  json.end_array();
  json.list("notes", analysis.notes, Layout::lines);
  if (!detail.empty()) write_detail(json, detail);
  json.end_object();
  return std::move(json).finish();
}

}  // namespace

std::string results_text(const Results& results, const Analysis& analysis) {
  return text_of(results, analysis, results.detail);
}

std::uint64_t content_hash(const Results& results, const Analysis& analysis) {
  return ContentHash{}.text(text_of(results, analysis, {})).value();
}

void write_results_file(const std::string& path, std::string_view text) {
  const auto fail = [&](const char* what) {
    throw ResultsFileError({fmt::format("{}: {}: {}", path, what, std::strerror(errno))});
  };
  // A device or a pipe is written to as it is: renaming onto it would put a file in its place.
  std::error_code unknown;
  const std::filesystem::file_status status = std::filesystem::status(path, unknown);
  const bool special = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  const std::string beside = special ? path : path + ".partial";
  {
    errno = special ? 0 : config::make_fresh_file(beside);
    if (errno != 0) fail("cannot be written");
    std::ofstream out(beside, std::ios::binary | std::ios::trunc);
    if (!out) fail("cannot be written");
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();
    if (!out) {
      const int error = errno;
      std::error_code ignored;
      if (!special) std::filesystem::remove(beside, ignored);
      errno = error;
      fail("writing failed");
    }
  }
  if (special) return;
  std::error_code error;
  std::filesystem::rename(beside, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);
    throw ResultsFileError({fmt::format("{}: cannot be replaced: {}", path, error.message())});
  }
}

}  // namespace paceline::experiment
