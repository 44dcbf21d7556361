// Tables of a report page. Cells that hold figures carry them unrounded in data attributes, as the
// results file has them, for the charts and for checks of the page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "control/experiment/page/html_text.h"
#include "control/experiment/page/report_parts.h"
#include "control/experiment/report/report.h"
#include "control/experiment/report/value_text.h"
#include "control/experiment/text/number_text.h"

namespace paceline::experiment {
namespace {

std::string figure_text(double value) { return number_text(rounded(value, kFigureDigits)); }

// `charted`: a chart is drawn from this row, and needs to know how the metric is to be read.
std::string effect_data(const std::string& scenario, const std::string& arm, Metric metric,
                        const PairedEffect& paired, Verdict verdict, bool charted) {
  const MetricSpec& spec = spec_of(metric);
  std::string out = fmt::format(
      "data-scenario=\"{}\" data-arm=\"{}\" data-metric=\"{}\" data-effect=\"{}\" "
      "data-low=\"{}\" data-high=\"{}\" data-verdict=\"{}\"",
      html_escaped(scenario), html_escaped(arm), spec.name, figure_text(paired.effect),
      figure_text(paired.interval.low), figure_text(paired.interval.high), to_text(verdict));
  if (charted) {
    out += fmt::format(" data-label=\"{}\" data-scale=\"{}\" data-good=\"{}\"",
                       html_escaped(spec.label), to_text(paired.scale), to_text(spec.better));
  }
  return out;
}

std::string mark_cell(Role role) {
  if (role == Role::primary) return "<td class=\"mark\"><abbr title=\"primary\">P</abbr></td>";
  if (role == Role::guardrail) return "<td class=\"mark\"><abbr title=\"guardrail\">G</abbr></td>";
  return "<td class=\"mark\"></td>";
}

std::string verdict_cell(Verdict verdict) {
  return fmt::format("<td class=\"verdict {}\">{}</td>", verdict_class(verdict), to_text(verdict));
}

// Means over the runs of an arm that ended well, whether or not their partners did.
double mean_over_runs(const Results& results, const std::string& scenario, const std::string& arm,
                      Metric metric) {
  double sum = 0;
  unsigned count = 0;
  for (const RunResult& run : results.runs) {
    if (run.scenario != scenario || run.arm != arm || run.status != RunStatus::ok) continue;
    const double value = rounded(run.metrics[metric]);
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? kUndefined : sum / count;
}

// A row per scenario and arm, a column per metric; for occasional ones if a run has it.
std::string means_table(const PageContext& page, std::span<const Metric> wanted) {
  const AnalysisPlan& plan = page.analysis.plan;
  std::string out =
      "<div class=\"scroll\"><table class=\"means\">\n<thead><tr><th scope=\"col\">scenario</th>"
      "<th scope=\"col\">arm</th>";
  const auto shown = [&page](Metric metric) {
    return !spec_of(metric).occasional ||
           std::any_of(page.results.runs.begin(), page.results.runs.end(),
                       [metric](const RunResult& run) { return !std::isnan(run.metrics[metric]); });
  };
  std::vector<Metric> metrics;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(metrics), shown);
  for (const Metric metric : metrics) {
    out += fmt::format("<th scope=\"col\" class=\"n\" title=\"{}\">{}</th>",
                       html_escaped(spec_of(metric).meaning), html_escaped(spec_of(metric).label));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const std::string& scenario : plan.scenarios) {
    for (const std::string& arm : plan.arms) {
      out += fmt::format(
          "<tr data-scenario=\"{0}\" data-arm=\"{1}\"><th scope=\"row\">{0}</th><td>{1}</td>",
          html_escaped(scenario), html_escaped(arm));
      for (const Metric metric : metrics) {
        const MetricSpec& spec = spec_of(metric);
        const double mean = mean_over_runs(page.results, scenario, arm, metric);
        const DisplayUnit unit = display_unit(spec.unit, mean);
        const std::string text = spec.unit == Unit::share && !std::isnan(mean)
                                     ? fmt::format("{:.2f}", mean * unit.factor)
                                     : significant(mean * unit.factor);
        out += fmt::format("<td class=\"n\" data-metric=\"{}\" data-value=\"{}\">{}</td>",
                           spec.name, number_text(mean), with_unit(text, std::string(unit.name)));
      }
      out += "</tr>\n";
    }
  }
  return out.append(kTableEnd);
}

}  // namespace

std::string verdict_class(Verdict verdict) {
  if (verdict == Verdict::better) return "better";
  return verdict == Verdict::worse ? "worse" : "neutral";
}

std::string effect_table(const Comparison& comparison, const AnalysisPlan& plan, bool all) {
  std::vector<const MetricEffect*> shown;
  for (const MetricEffect& effect : comparison.effects) {
    if (all || spec_of(effect.metric).headline) shown.push_back(&effect);
  }
  std::stable_partition(shown.begin(), shown.end(),
                        [](const MetricEffect* effect) { return effect->role == Role::primary; });
  std::string out =
      table_head(all ? "effects all" : "effects",
                 {"", "metric", "#" + plan.arms[0], "#" + comparison.arm, "#effect",
                  significant(plan.confidence * 100) + " % interval", "#p", "verdict"});
  for (const MetricEffect* effect : shown) {
    const ReportRow row = row_of(*effect);
    out += fmt::format(
        "<tr {}>{}<th scope=\"row\" title=\"{}\">{}</th><td class=\"n\" data-value=\"{}\">{}</td>"
        "<td class=\"n\" data-value=\"{}\">{}</td><td class=\"n effect\">{}</td>"
        "<td class=\"interval\">{}</td><td class=\"n\" data-value=\"{}\">{}</td>{}</tr>\n",
        effect_data(comparison.scenario, comparison.arm, effect->metric, effect->paired,
                    effect->verdict, !all),
        mark_cell(effect->role), html_escaped(spec_of(effect->metric).meaning),
        html_escaped(row.label), number_text(effect->paired.baseline_mean),
        html_escaped(with_unit(row.baseline, row.unit)), number_text(effect->paired.treatment_mean),
        html_escaped(with_unit(row.arm, row.unit)), html_escaped(row.effect),
        html_escaped(row.interval), figure_text(effect->p_adjusted), html_escaped(row.p),
        verdict_cell(effect->verdict));
  }
  return out.append(kTableEnd);
}

std::string overview_table(const Analysis& analysis) {
  const AnalysisPlan& plan = analysis.plan;
  std::string out = table_head(
      "overview", {"scenario", "arm", "decided by",
                   "#" + (plan.arms.empty() ? std::string("baseline") : plan.arms[0]), "#arm",
                   "#effect", significant(plan.confidence * 100) + " % interval", "verdict"});
  const auto row = [&out](const std::string& where, const std::string& heading,
                          const std::string& arm, Metric metric, const PairedEffect& paired,
                          Verdict verdict, const char* kind) {
    const MetricSpec& spec = spec_of(metric);
    const DisplayUnit unit =
        display_unit(spec.unit, std::max(paired.baseline_mean, paired.treatment_mean));
    const EffectText text = effect_text(paired, spec.unit);
    const auto cell = [&](double value) {
      return fmt::format("<td class=\"n\" data-value=\"{}\">{}</td>", number_text(value),
                         with_unit(significant(value * unit.factor), std::string(unit.name)));
    };
    out += fmt::format(
        "<tr class=\"{}\" {}><th scope=\"row\">{}</th><td>{}</td><td>{}</td>{}{}"
        "<td class=\"n effect\">{}</td><td class=\"interval\">{}</td>{}</tr>\n",
        kind, effect_data(where, arm, metric, paired, verdict, true), heading, html_escaped(arm),
        html_escaped(spec.label), cell(paired.baseline_mean), cell(paired.treatment_mean),
        html_escaped(verdict == Verdict::identical ? "0" : text.effect),
        html_escaped(text.interval), verdict_cell(verdict));
  };
  for (const Comparison& comparison : analysis.comparisons) {
    const MetricEffect* primary = comparison.primary();
    const auto place = std::find(plan.scenarios.begin(), plan.scenarios.end(), comparison.scenario);
    const std::string heading =
        fmt::format("<a href=\"#{}\">{}</a>",
                    anchor_of(static_cast<std::size_t>(place - plan.scenarios.begin())),
                    html_escaped(comparison.scenario));
    if (primary == nullptr || primary->pairs == 0) {
      out += fmt::format(
          "<tr><th scope=\"row\">{}</th><td>{}</td><td colspan=\"6\">no primary metric could be "
          "compared</td></tr>\n",
          heading, html_escaped(comparison.arm));
      continue;
    }
    row(comparison.scenario, heading, comparison.arm, primary->metric, primary->paired,
        primary->verdict, "primary");
  }
  for (const Summary& summary : analysis.summaries) {
    row(summary.spec.label, html_escaped(summary.spec.label), summary.arm, summary.spec.metric,
        summary.paired, summary.verdict, "summary");
  }
  return out.append(kTableEnd);
}

std::string costs_table(const PageContext& page) {
  constexpr std::array kCosts = {Metric::control_overhead,
                                 Metric::drops,
                                 Metric::lost_link_down,
                                 Metric::lost_no_route,
                                 Metric::lost_on_links,
                                 Metric::damaged_on_links,
                                 Metric::lost_control,
                                 Metric::trimmed,
                                 Metric::retransmitted_bytes,
                                 Metric::deepest_queue_bytes,
                                 Metric::pfc_pause_us,
                                 Metric::cnps,
                                 Metric::ecn_marks};
  return means_table(page, kCosts);
}

std::string limits_table(const PageContext& page) {
  constexpr std::array kLimits = {Metric::limited_grant,      Metric::limited_path,
                                  Metric::limited_window,     Metric::limited_uplink,
                                  Metric::limited_credit,     Metric::limited_port,
                                  Metric::limited_application};
  return means_table(page, kLimits);
}

}  // namespace paceline::experiment
