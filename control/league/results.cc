#include "control/league/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/experiment/analysis/statistics.h"
#include "control/experiment/design.h"
#include "control/experiment/report/value_text.h"
#include "control/experiment/text/number_text.h"

namespace paceline::league {

namespace {

using experiment::JsonWriter;
using Layout = JsonWriter::Layout;

void write_head(JsonWriter& json, const Results& results) {
  const Plan& plan = results.plan;
  json.member("schema", std::uint64_t{1});
  json.member("kind", kLeagueKind);
  json.member("version", results.version);
  json.member("name", plan.name);
  json.member("size", to_text(plan.size));
  json.member("command", results.command);
  json.member("seed", plan.seed);
  json.member("repetitions", std::uint64_t{plan.repetitions});
  json.member("confidence", plan.confidence);
  json.member("margin", plan.margin);
  json.member("queue_floor_bytes", plan.queue_floor_bytes);
  json.list("seeds", results.seeds);
  // For intervals of pairs: n - 1 degrees of freedom.
  const double t = plan.repetitions < 2
                       ? Summary::kNone
                       : experiment::t_quantile(0.5 + plan.confidence / 2, plan.repetitions - 1);
  json.member("t_quantile", experiment::rounded(t, experiment::kFigureDigits));
  json.key("ranked_by");
  json.begin_array(Layout::compact);
  for (const Measure measure : kRanked) json.value(spec_of(measure).name);
  json.end_array();
  json.key("measures");
  json.begin_array();
  for (const MeasureSpec& spec : measure_table()) {
    json.begin_object(Layout::compact);
    json.member("name", spec.name);
    json.member("label", spec.label);
    json.member("unit", experiment::to_text(spec.unit));
    json.member("better", experiment::to_text(spec.better));
    json.member("meaning", spec.meaning);
    json.end_object();
  }
  json.end_array();
}

void write_entries(JsonWriter& json, const Plan& plan) {
  json.key("entries");
  json.begin_array();
  for (const Entry& entry : plan.entries) {
    json.begin_object();
    json.member("name", entry.name);
    json.member("algorithm", entry.algorithm);
    json.member("profile", entry.profile);
    json.member("needs", to_text(entry.needs));
    json.member("effort", entry.effort);
    json.list("set", entry.settings);
    json.key("params");
    json.begin_array(Layout::compact);
    for (const Param& param : entry.params) {
      json.begin_object();
      json.member("name", param.name);
      json.member("value", param.value);
      json.member("unit", param.unit);
      json.member("changed", param.changed);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.key("omitted");
  json.begin_array();
  for (const Omitted& omitted : plan.omitted) {
    json.begin_object(Layout::compact);
    json.member("algorithm", omitted.algorithm);
    json.member("why", omitted.why);
    json.end_object();
  }
  json.end_array();
}

void write_scenarios(JsonWriter& json, const Plan& plan) {
  json.key("scenarios");
  json.begin_array();
  for (const PlanScenario& scenario : plan.scenarios) {
    json.begin_object();
    json.member("name", scenario.name);
    json.member("file", scenario.file);
    json.member("about", scenario.about);
    json.list("set", scenario.settings);
    json.member("text", scenario.text);
    json.end_object();
  }
  json.end_array();
}

void write_summary(JsonWriter& json, const MeasureSpec& spec, const Summary& summary) {
  json.key(spec.name);
  json.begin_object(Layout::compact);
  json.member("mean", summary.mean);
  json.member("low", summary.low);
  json.member("high", summary.high);
  json.list("values", summary.values);
  json.end_object();
}

void write_cell(JsonWriter& json, const Results& results, std::size_t s, std::size_t e) {
  const Plan& plan = results.plan;
  const Cell& cell = results.cells[plan.cell(s, e)];
  const Place& place = results.standings.places[plan.cell(s, e)];
  json.begin_object();
  json.member("scenario", plan.scenarios[s].name);
  json.member("entry", plan.entries[e].name);
  json.member("status", to_text(cell.status));
  json.member("reason", cell.reason);
  json.member("messages", cell.messages);
  json.member("rank", std::uint64_t{place.rank});
  std::vector<std::string> by;
  for (const std::uint32_t other : place.dominated_by) by.push_back(plan.entries[other].name);
  json.list("dominated_by", by);
  json.member("command", reproduce_command(plan, s, e, results.seeds.front()));
  std::vector<std::string> hashes;
  for (const std::uint64_t hash : cell.trace_hashes) hashes.push_back(fmt::format("{:016x}", hash));
  json.list("trace_hashes", hashes);
  json.key("measures");
  json.begin_object();
  for (const MeasureSpec& spec : measure_table()) write_summary(json, spec, cell[spec.measure]);
  json.end_object();
  if (!cell.course.queue_bytes.empty()) write_course(json, cell.course);
  json.end_object();
}

void write_standings(JsonWriter& json, const Plan& plan, std::string_view key,
                     const std::vector<Standing>& standings) {
  json.key(key);
  json.begin_array();
  for (const Standing& standing : standings) {
    json.begin_object(Layout::compact);
    json.member("entry", plan.entries[standing.entry].name);
    json.member("undominated", std::uint64_t{standing.undominated});
    json.member("ranked", std::uint64_t{standing.ranked});
    json.member("unfinished", std::uint64_t{standing.unfinished});
    json.member("mean_rank", standing.mean_rank);
    json.member("efficiency_to_best", standing.efficiency);
    json.member("slowdown_p99_to_best", standing.slowdown);
    json.member("queue_max_to_best", standing.queue);
    json.end_object();
  }
  json.end_array();
}

std::string standing_lines(const Plan& plan, std::string_view kind,
                           const std::vector<Standing>& standings, std::size_t width) {
  if (standings.empty()) return {};
  std::string out = fmt::format(
      "\n{:<{}}  undominated  mean rank  efficiency  p99 slowdown  peak queue\n", kind, width);
  for (const Standing& s : standings) {
    const auto ratio = [](double v) {
      return std::isnan(v) ? std::string("-") : fmt::format("x{:.2f}", v);
    };
    out += fmt::format("{:<{}}  {:>5} of {:<3}  {:>9}  {:>10}  {:>12}  {:>10}{}\n",
                       plan.entries[s.entry].name, width, s.undominated, plan.scenarios.size(),
                       std::isnan(s.mean_rank) ? "-" : fmt::format("{:.1f}", s.mean_rank),
                       ratio(s.efficiency), ratio(s.slowdown), ratio(s.queue),
                       s.unfinished == 0 ? "" : fmt::format("  {} unfinished", s.unfinished));
  }
  return out;
}

}  // namespace

Results results_of(Plan plan, const std::vector<Run>& runs) {
  Results out;
  out.cells = cells_of(plan, runs);
  out.standings = standings_of(plan, out.cells);
  for (std::uint32_t r = 0; r < plan.repetitions; ++r) {
    out.seeds.push_back(experiment::repetition_seed(plan.seed, r));
  }
  out.plan = std::move(plan);
  return out;
}

std::string results_text(const Results& results) {
  JsonWriter json;
  json.begin_object();
  write_head(json, results);
  write_entries(json, results.plan);
  write_scenarios(json, results.plan);
  write_standings(json, results.plan, "edge", results.standings.edge);
  write_standings(json, results.plan, "switch", results.standings.switches);
  json.key("cells");
  json.begin_array();
  for (std::size_t s = 0; s < results.plan.scenarios.size(); ++s) {
    for (std::size_t e = 0; e < results.plan.entries.size(); ++e) write_cell(json, results, s, e);
  }
  json.end_array();
  json.end_object();
  return std::move(json).finish();
}

std::string value_words(Measure measure, double value) {
  if (std::isnan(value)) return "-";
  const experiment::DisplayUnit unit =
      experiment::display_unit(spec_of(measure).unit, std::abs(value));
  return experiment::with_unit(experiment::significant(value * unit.factor, 3),
                               std::string(unit.name));
}

std::string format_league(const Results& results) {
  const Plan& plan = results.plan;
  std::size_t width = 12;
  for (const Entry& entry : plan.entries) width = std::max(width, entry.name.size());
  std::string out = fmt::format(
      "ranks by dominance over efficiency, p99 slowdown and peak queue (equal: within {:g} %, "
      "queues "
      "below {}); 1 = undominated\n\n",
      plan.margin * 100,
      value_words(Measure::queue_max_bytes, static_cast<double>(plan.queue_floor_bytes)));
  for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
    out += fmt::format("{:>3}  {}\n", s + 1, plan.scenarios[s].name);
  }
  out += fmt::format("\n{:<{}}", "", width);
  for (std::size_t s = 0; s < plan.scenarios.size(); ++s) out += fmt::format("{:>4}", s + 1);
  out += "\n";
  for (std::size_t e = 0; e < plan.entries.size(); ++e) {
    out += fmt::format("{:<{}}", plan.entries[e].name, width);
    for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
      const std::uint32_t rank = results.standings.places[plan.cell(s, e)].rank;
      out += fmt::format("{:>4}", rank == 0 ? "x" : std::to_string(rank));
    }
    out += "\n";
  }
  out += standing_lines(plan, "edge only", results.standings.edge, width);
  out += standing_lines(plan, "with switches", results.standings.switches, width);
  return out +
         "\nUndominated is not best: an entry that sends little keeps queues short and is hard to "
         "dominate.\nRead efficiency and p99 slowdown, too. (The last three columns: geometric "
         "means of the ratio to the\nbest of the kind.)\n";
}

}  // namespace paceline::league
