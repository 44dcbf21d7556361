#include "control/league/page/page_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "control/experiment/page/html_text.h"
#include "control/experiment/report/value_text.h"
#include "control/experiment/text/number_text.h"

namespace paceline::league {

namespace {

using experiment::html_escaped;
using experiment::kTableEnd;
using experiment::table_head;

constexpr std::array<Measure, 13> kFigures{
    Measure::efficiency,
    Measure::slowdown_p50,
    Measure::slowdown_p99,
    Measure::slowdown_p999,
    Measure::slowdown_small_p99,
    Measure::slowdown_large_p99,
    Measure::queue_max_bytes,
    Measure::queue_mean_bytes,
    Measure::pause_us,
    Measure::drops,
    Measure::retransmitted_bytes,
    Measure::jain_fairness,
    Measure::control_overhead,
};

std::string ratio_cell(double value, double best) {
  if (std::isnan(value)) return "<td class=\"n\">-</td>";
  const bool is_best = value == best;
  return fmt::format("<td class=\"n{}\">x{:.2f}</td>", is_best ? " effect" : "", value);
}

std::string standings_table(const Results& results, const char* title,
                            const std::vector<Standing>& standings) {
  if (standings.empty()) return {};
  std::string out =
      fmt::format("<h3>{}</h3>\n", title) +
      table_head("standings", {"", "entry", "#undominated in", "#mean rank", "#efficiency",
                               "#p99 slowdown", "#peak queue", "tuning"});
  Standing best = standings.front();
  for (const Standing& s : standings) {
    best.efficiency = std::fmax(best.efficiency, s.efficiency);
    best.slowdown = std::fmin(best.slowdown, s.slowdown);
    best.queue = std::fmin(best.queue, s.queue);
  }
  for (std::size_t i = 0; i < standings.size(); ++i) {
    const Standing& s = standings[i];
    const Entry& entry = results.plan.entries[s.entry];
    const double share =
        static_cast<double>(s.undominated) / static_cast<double>(results.plan.scenarios.size());
    out += fmt::format(
        "<tr><td class=\"n mark\">{}</td><th scope=\"row\"><a href=\"#entry-{}\">{}</a></th><td "
        "class=\"n\"><span class=\"share\" style=\"width:{:.0f}px\"></span>{} of {}{}</td><td "
        "class=\"n\">{}</td>",
        i + 1, s.entry, html_escaped(entry.name), share * 60, s.undominated,
        results.plan.scenarios.size(),
        s.unfinished == 0 ? "" : fmt::format(" ({} unfinished)", s.unfinished),
        std::isnan(s.mean_rank) ? "-" : fmt::format("{:.1f}", s.mean_rank));
    out += ratio_cell(s.efficiency, best.efficiency);
    out += ratio_cell(s.slowdown, best.slowdown) + ratio_cell(s.queue, best.queue);
    out += fmt::format("<td class=\"prose\">{}</td></tr>\n", html_escaped(entry.effort));
  }
  return out.append(kTableEnd);
}

std::string interval_words(Measure measure, const Summary& summary) {
  if (std::isnan(summary.low) || summary.low == summary.high) return "";
  return fmt::format(" <small>{} &ndash; {}</small>",
                     html_escaped(value_words(measure, summary.low)),
                     html_escaped(value_words(measure, summary.high)));
}

// Whether any entry has a value there.
bool applies(const Results& results, std::size_t s, Measure measure) {
  for (std::size_t e = 0; e < results.plan.entries.size(); ++e) {
    if (!std::isnan(results.cells[results.plan.cell(s, e)][measure].mean)) return true;
  }
  return false;
}

std::string figures_row(const Results& results, std::size_t s, std::size_t e) {
  const std::size_t c = results.plan.cell(s, e);
  const Cell& cell = results.cells[c];
  const Place& place = results.standings.places[c];
  std::string out = fmt::format(
      "<tr><th scope=\"row\">{}</th><td class=\"n{}\">{}</td>",
      html_escaped(results.plan.entries[e].name), place.rank == 1 ? " effect" : "",
      place.rank == 0 ? html_escaped(to_text(cell.status)) : std::to_string(place.rank));
  for (const Measure measure : kFigures) {
    if (!applies(results, s, measure)) continue;
    const Summary& summary = cell[measure];
    out +=
        fmt::format("<td class=\"n\">{}{}</td>", html_escaped(value_words(measure, summary.mean)),
                    interval_words(measure, summary));
  }
  return out + "</tr>\n";
}

}  // namespace

std::string standings_html(const Results& results) {
  const Plan& plan = results.plan;
  std::string out = "<section id=\"standings\">\n<h2>Standings</h2>\n";
  out += fmt::format(
      "<p>Undominated: no entry of the same kind is as good in efficiency, p99 slowdown and peak "
      "queue at once (within {:g} %) and better in one of them. The last three columns are "
      "geometric "
      "means over the scenarios of the ratio to the best there: x1.00 is the best everywhere; "
      "an efficiency below it, a slowdown or queue above it, is the loss.</p>\n"
      "<p><b>Undominated is not best:</b> an entry that sends little keeps queues short and is "
      "hard "
      "to dominate. Read efficiency and p99 slowdown, too.</p>\n",
      plan.margin * 100);
  const bool both = !results.standings.edge.empty() && !results.standings.switches.empty();
  out += standings_table(results, "Hosts alone", results.standings.edge);
  out += standings_table(results, "With help of switches", results.standings.switches);
  if (!both) {
    out += fmt::format("<p class=\"remarks\">No entry {} in this league.</p>\n",
                       results.standings.edge.empty() ? "does without features of switches"
                                                      : "needs features of switches");
  }
  return out + "</section>\n";
}

std::string entries_html(const Results& results) {
  std::string out = "<section id=\"entries\">\n<h2>Entries</h2>\n" +
                    table_head("", {"entry", "algorithm", "profile", "needs", "tuning it had",
                                    "settings and parameters"});
  for (std::size_t e = 0; e < results.plan.entries.size(); ++e) {
    const Entry& entry = results.plan.entries[e];
    std::string settings;
    for (const std::string& set : entry.settings) {
      settings += fmt::format("<code>{}</code> ", html_escaped(set));
    }
    std::string params;
    for (const Param& p : entry.params) {
      params += fmt::format("{}{} = {}{}{}\n", p.changed ? "* " : "  ", p.name,
                            experiment::number_text(p.value), p.unit == "1" ? "" : " ",
                            p.unit == "1" ? "" : p.unit);
    }
    out += fmt::format(
        "<tr id=\"entry-{}\"><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td "
        "class=\"prose\">{}</td><td class=\"prose\"><div class=\"sets\">{}</div>"
        "<details><summary>{} parameters</summary><pre>{}</pre></details></td></tr>\n",
        e, html_escaped(entry.name), html_escaped(entry.algorithm), html_escaped(entry.profile),
        to_text(entry.needs), html_escaped(entry.effort), settings, entry.params.size(),
        html_escaped(params));
  }
  return out.append(kTableEnd) +
         "<p class=\"remarks\">* differs from the algorithm's default. "
         "Values as on a link of 100 Gb/s.</p>\n</section>\n";
}

std::string scenarios_html(const Results& results) {
  const Plan& plan = results.plan;
  std::string out = "<section id=\"scenarios\">\n<h2>Scenarios, every figure</h2>\n";
  for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
    const PlanScenario& scenario = plan.scenarios[s];
    out += fmt::format("<section class=\"scenario\" id=\"scenario-{}\">\n<h3>{}</h3>\n<p>{}</p>\n",
                       s, html_escaped(scenario.name), html_escaped(scenario.about));
    std::string settings;
    for (const std::string& set : scenario.settings) {
      settings += fmt::format(" <code>{}</code>", html_escaped(set));
    }
    out += fmt::format(
        "<details><summary>{}</summary><pre>{}</pre></details>\n<p class=\"remarks\">laid over it "
        "in this size:{}</p>\n",
        html_escaped(scenario.file), html_escaped(scenario.text),
        settings.empty() ? " nothing" : settings);
    std::vector<std::string> columns{"entry", "#rank"};
    for (const Measure measure : kFigures) {
      if (applies(results, s, measure))
        columns.push_back(fmt::format("#{}", spec_of(measure).label));
    }
    out += table_head("small figures-table", columns);
    for (std::size_t e = 0; e < plan.entries.size(); ++e) out += figures_row(results, s, e);
    out.append(kTableEnd) += "</section>\n";
  }
  return out + "</section>\n";
}

}  // namespace paceline::league
