#include <array>

#include "control/experiment/live/report/live_report.h"
#include "control/experiment/text/json_writer.h"
#include "control/experiment/text/number_text.h"

namespace paceline::experiment::live {

namespace {

void figure(JsonWriter& json, std::string_view name, double value) {
  json.member(name, rounded(value, kFigureDigits));
}

void interval(JsonWriter& json, std::string_view name, const Interval& value) {
  json.list(name,
            std::array{rounded(value.low, kFigureDigits), rounded(value.high, kFigureDigits)});
}

// Intervals are of the contrast; `effect` and `effect_interval` are what people read.
void write_metric(JsonWriter& json, const MetricResult& m) {
  json.begin_object();
  json.member("metric", info(m.metric).name);
  json.member("role", to_text(m.role));
  json.member("pairs", std::uint64_t{m.n});
  json.member("pairs_without_value", std::uint64_t{m.missing});
  figure(json, "champion", m.champion);
  figure(json, "candidate", m.candidate);
  figure(json, "effect", effect_of(m.metric, m.mean));
  interval(json, "effect_interval",
           {effect_of(m.metric, m.decision.low), effect_of(m.metric, m.decision.high)});
  figure(json, "mean", m.mean);
  figure(json, "sd", m.sd);
  interval(json, "sequence", m.sequence);
  interval(json, "bootstrap", m.bootstrap);
  interval(json, "randomisation", m.randomised);
  figure(json, "p", m.p);
  if (m.role == MetricRole::exploratory) figure(json, "p_adjusted", m.p_adjusted);
  if (m.role == MetricRole::guardrail) {
    figure(json, "limit", effect_of(m.metric, m.limit));
    interval(json, "guard", m.guard);
    json.member("breached", m.breached);
    json.member("cleared", m.cleared);
  }
  json.end_object();
}

void write_balance(JsonWriter& json, const std::vector<BalanceCheck>& checks) {
  json.key("balance");
  json.begin_array();
  for (const BalanceCheck& check : checks) {
    json.begin_object(JsonWriter::Layout::compact);
    json.member("check", std::string_view(check.name));
    interval(json, "observed", {check.observed[0], check.observed[1]});
    interval(json, "expected", {check.expected[0], check.expected[1]});
    figure(json, "p", check.p);
    json.member("stops", check.stops);
    json.member("mismatch", check.mismatch());
    json.end_object();
  }
  json.end_array();
}

void write_interference(JsonWriter& json, const Interference& i) {
  json.key("interference");
  json.begin_object();
  json.member("known", i.known);
  json.member("crossed_pairs", std::uint64_t{i.crossed_pairs});
  json.member("whole_pairs", std::uint64_t{i.whole_pairs});
  figure(json, "naive", i.naive);
  interval(json, "naive_interval", i.naive_interval);
  figure(json, "spillover", i.spillover);
  interval(json, "spillover_interval", i.spillover_interval);
  figure(json, "total", i.total);
  interval(json, "total_interval", i.total_interval);
  figure(json, "gap", i.gap);
  interval(json, "gap_interval", i.gap_interval);
  json.member("interferes", i.interferes());
  json.end_object();
}

void write_course(JsonWriter& json, const std::vector<SequencePoint>& course) {
  json.key("course");
  json.begin_array();
  for (const SequencePoint& point : course) {
    json.begin_object(JsonWriter::Layout::compact);
    json.member("pairs", std::uint64_t{point.n});
    figure(json, "mean", point.mean);
    interval(json, "interval", point.interval);
    json.end_object();
  }
  json.end_array();
}

void write_strata(JsonWriter& json, const std::vector<StratumResult>& strata) {
  json.key("strata");
  json.begin_array();
  for (const StratumResult& s : strata) {
    json.begin_object(JsonWriter::Layout::compact);
    figure(json, "load_from", s.from);
    figure(json, "load_to", s.to);  // null: no end
    json.member("pairs", std::uint64_t{s.n});
    figure(json, "mean", s.mean);
    interval(json, "sequence", s.sequence);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string live_report_json(const LiveReport& report) {
  const LiveAnalysis& a = report.analysis;
  JsonWriter json;
  json.begin_object();
  json.member("schema", std::uint64_t{1});
  json.member("version", std::string_view(report.version));
  json.member("experiment", std::string_view(report.plan.name));
  json.member("design", to_text(report.plan.design));
  json.key("arms");
  json.begin_array(JsonWriter::Layout::compact);
  for (const config::Arm& arm : report.plan.arms) json.value(std::string_view(arm.name));
  json.end_array();
  json.member("schedule_sha256", std::string_view(report.schedule.digest));
  json.member("verdict", to_text(a.verdict));
  json.list("reasons", a.reasons, JsonWriter::Layout::lines);
  json.member("finished", report.circumstances.finished);
  json.member("pairs_attempted", std::uint64_t{a.attempted});
  json.member("pairs_usable", std::uint64_t{a.usable});
  json.member("pairs_planned", std::uint64_t{report.schedule.pairs()});
  json.member("pairs_for_minimum_effect", std::uint64_t{a.pairs_for_effect});
  json.list("discarded", a.discarded, JsonWriter::Layout::lines);
  json.list("errors", a.errors, JsonWriter::Layout::lines);
  json.key("metrics");
  json.begin_array();
  for (const MetricResult& m : a.metrics) write_metric(json, m);
  json.end_array();
  figure(json, "variance_explained", a.explained);
  write_balance(json, a.balance);
  write_strata(json, a.strata);
  write_interference(json, a.interference);
  json.key("carryover");
  json.begin_object(JsonWriter::Layout::compact);
  json.member("pairs_after_change", std::uint64_t{a.carryover.after_change});
  json.member("pairs_after_same", std::uint64_t{a.carryover.after_same});
  figure(json, "difference", a.carryover.difference);
  figure(json, "p", a.carryover.p);
  json.end_object();
  write_course(json, a.course);
  json.member("replay", std::string_view(report.replay));
  json.end_object();
  return std::move(json).finish();
}

}  // namespace paceline::experiment::live
