// The part of a report page about one scenario.
#include <fmt/format.h>

#include "control/experiment/page/html_text.h"
#include "control/experiment/page/report_parts.h"
#include "control/experiment/report/report.h"
#include "control/experiment/report/verdict_words.h"

namespace paceline::experiment {
namespace {

std::vector<std::string> run_commands(const PageContext& page, const std::string& scenario) {
  std::vector<std::string> commands;
  for (const std::string& arm : page.analysis.plan.arms) {
    const ArmFigures* figures = page.results.detail.find(scenario, arm);
    if (figures == nullptr || figures->series.size() == 0) continue;
    commands.push_back(page.reproduce.run(scenario, arm, figures->series.seed));
  }
  return commands;
}

bool has(const PageContext& page, const std::string& scenario, bool series) {
  for (const ArmFigures& arm : page.results.detail.arms) {
    if (arm.scenario != scenario) continue;
    if (series ? arm.series.size() != 0 : !arm.fct_ns.empty()) return true;
  }
  return false;
}

std::string figures_of_scenario(const PageContext& page, std::size_t index) {
  const std::string& scenario = page.analysis.plan.scenarios[index];
  const std::string id = anchor_of(index);
  const auto place = static_cast<int>(index);
  const std::string experiment = page.reproduce.experiment();
  std::string out = "<div class=\"figures\">\n";
  out +=
      figure_html({id + "-effects",
                   "effects",
                   place,
                   "Effect on every headline metric",
                   "Dot: improvement factor; whisker: its interval. Right of 1 is better, left is "
                   "worse, whichever way the metric points. Filled: the verdict is "
                   "<em>better</em> or <em>worse</em>; hollow: no difference shown.",
                   {experiment}});
  out +=
      figure_html({id + "-pairs",
                   "pairs",
                   place,
                   "Every repetition",
                   "The primary metric pair by pair. Line and band: the effect and its interval. "
                   "These points are the data of the verdict.",
                   {experiment}});
  if (has(page, scenario, false)) {
    out += figure_html({id + "-fct",
                        "fct",
                        place,
                        "Message completion times",
                        "Left: share of messages completed within a time. Right: the tail, share "
                        "that took longer. All messages of all repetitions together, resolved to "
                        "1 %: a description, no test (messages of a run are not independent).",
                        {experiment}});
    out += figure_html({id + "-slowdown",
                        "slowdown",
                        place,
                        "Slowdown by message size",
                        "Completion time over that of the same message on an empty fabric; each "
                        "bin is a factor of two in size. Hollow: fewer than 100 messages, whose "
                        "p99 is their slowest. Bins of fewer than 10 are in the table only.",
                        {experiment}});
  }
  if (has(page, scenario, true)) {
    const ArmFigures* first = nullptr;
    for (const ArmFigures& arm : page.results.detail.arms) {
      if (first == nullptr && arm.scenario == scenario && arm.series.size() != 0) first = &arm;
    }
    Figure time{id + "-time",
                "time",
                place,
                "One repetition over time",
                fmt::format("Repetition {} (seed {}) under each arm. Queue: fullest switch port "
                            "(thick) and all ports together (thin), the greatest of {} looks per "
                            "interval; what never left 0 in any arm has no panel.",
                            first->series.repetition + 1, first->series.seed, first->series.looks),
                run_commands(page, scenario)};
    time.wide = true;
    out += figure_html(time);
  }
  return out + "</div>\n";
}

}  // namespace

std::string anchor_of(std::size_t scenario) { return fmt::format("scenario-{}", scenario + 1); }

std::string figure_html(const Figure& figure) {
  std::string out = fmt::format(
      "<figure id=\"{}\" class=\"{}\" data-chart=\"{}\" data-index=\"{}\">\n<figcaption><b>{}</b> "
      "<span>{}</span></figcaption>\n<div class=\"chart\"></div>\n",
      figure.id, figure.wide ? "wide" : "half", figure.kind, figure.scenario, figure.title,
      figure.caption);
  out += "<div class=\"foot\">";
  for (const std::string& command : figure.commands) {
    out += fmt::format("<p class=\"command\"><code>{}</code></p>", html_escaped(command));
  }
  return out + "</div>\n</figure>\n";
}

std::string scenario_section(const PageContext& page, std::size_t index) {
  const AnalysisPlan& plan = page.analysis.plan;
  const std::string& scenario = plan.scenarios[index];
  std::string out =
      fmt::format("<section class=\"scenario\" id=\"{}\" data-scenario=\"{}\">\n<h2>{}</h2>\n",
                  anchor_of(index), html_escaped(scenario), html_escaped(scenario));
  const Report report = report_of(page.analysis, false);
  for (std::size_t i = 0; i < page.analysis.comparisons.size(); ++i) {
    const Comparison& comparison = page.analysis.comparisons[i];
    if (comparison.scenario != scenario) continue;
    const VerdictWords words = verdict_words(comparison, plan);
    out += fmt::format("<p class=\"words {}\">{} {}</p>\n", verdict_class(words.verdict),
                       html_escaped(words.sentence), html_escaped(words.losses));
    out += effect_table(comparison, plan, false);
    if (!report.blocks[i].remarks.empty()) out += "<ul class=\"remarks\">\n";
    for (const std::string& remark : report.blocks[i].remarks) {
      out += fmt::format("<li>{}</li>\n", html_escaped(remark));
    }
    if (!report.blocks[i].remarks.empty()) out += "</ul>\n";
    out += fmt::format("<details><summary>All metrics of {} against {}</summary>\n{}</details>\n",
                       html_escaped(comparison.arm), html_escaped(plan.arms[0]),
                       effect_table(comparison, plan, true));
  }
  return out + figures_of_scenario(page, index) + "</section>\n";
}

}  // namespace paceline::experiment
