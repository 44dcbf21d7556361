#include "control/league/page/page.h"

#include <fmt/format.h>

#include <cmath>

#include "control/experiment/page/html_text.h"
#include "control/league/page/page_assets.h"
#include "control/league/page/page_parts.h"

namespace paceline::league {

namespace {

using experiment::html_escaped;

std::string method_html(const Results& results) {
  const Plan& plan = results.plan;
  std::string out = "<section id=\"method\">\n<h2>Method, and how to repeat it</h2>\n<ul>\n";
  out += fmt::format(
      "<li>Virtual time: hosts run the transport and the algorithm that run on NICs; the fabric is "
      "emulated packet by packet. Results are the same on every machine.</li>\n"
      "<li>Every entry meets the same arrivals: repetition r has the same seed for all. A figure "
      "is "
      "the mean over {} repetitions; its interval is Student's t at {:g} %. A repetition is the "
      "datum, never a message.</li>\n"
      "<li>Ranked by dominance over efficiency, p99 slowdown and peak queue, without weights: "
      "rank 1 is beaten by no entry, that is, no entry of its kind is as good in all three (within "
      "{:g} %; queues below {} are alike) and better in one. Rank 2 is beaten by none but those of "
      "rank "
      "1, and so on.</li>\n"
      "<li>Entries that need features not every switch has are ranked apart from those that need "
      "hosts alone (and ECN, PFC).</li>\n"
      "<li>An entry whose run did not finish has no rank in that scenario.</li>\n</ul>\n",
      plan.repetitions, plan.confidence * 100, plan.margin * 100,
      value_words(Measure::queue_max_bytes, static_cast<double>(plan.queue_floor_bytes)));
  out += experiment::table_head("small", {"measure", "better", "meaning"});
  for (const MeasureSpec& spec : measure_table()) {
    out += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"prose\">{}</td></tr>\n",
                       html_escaped(spec.label), experiment::to_text(spec.better),
                       html_escaped(spec.meaning));
  }
  out += experiment::kTableEnd;
  for (const Omitted& omitted : plan.omitted) {
    out += fmt::format("<p>Left out: <b>{}</b>: {}</p>\n", html_escaped(omitted.algorithm),
                       html_escaped(omitted.why));
  }
  out += fmt::format("<p class=\"command\"><code>{}</code></p>\n<p id=\"downloads\"></p>\n",
                     html_escaped(results.command));
  return out + experiment::chart_licence_html() + "</section>\n";
}

constexpr std::string_view kMapHtml =
    "<section id=\"map\">\n<h2>Heat map</h2>\n"
    "<p class=\"controls\"><label>measure <select id=\"measure\"></select></label> "
    "<label><input type=\"checkbox\" id=\"plain\"> without colour</label></p>\n"
    "<p id=\"measure-meaning\" class=\"remarks\"></p>\n"
    "<div class=\"scroll\" id=\"heat-box\"></div>\n"
    "<p class=\"scale\" aria-hidden=\"true\"><span>best of the column</span><i></i><span "
    "id=\"scale-end\"></span> <span class=\"front-key\">framed: undominated</span></p>\n"
    "<p id=\"reading\" role=\"status\">Arrow keys move through the map once it has the focus; "
    "Enter "
    "shows a cell below.</p>\n"
    "<noscript><p>The map is drawn by a script. All its figures are in the tables of the "
    "scenarios.</p></noscript>\n</section>\n";

constexpr std::string_view kDuelHtml =
    "<section id=\"duel\">\n<h2>Two side by side</h2>\n"
    "<p class=\"controls\"><label>scenario <select id=\"duel-scenario\"></select></label> "
    "<label>entry <select id=\"duel-a\"></select></label> "
    "<label>against <select id=\"duel-b\"></select></label></p>\n"
    "<figure class=\"wide\"><figcaption><b id=\"duel-title\"></b><span>The first repetition over "
    "time: the fullest switch port, payload delivered to all hosts, and how long classes were "
    "paused.</span></figcaption><div id=\"duel-chart\"></div></figure>\n"
    "<div id=\"duel-table\" class=\"scroll\"></div>\n<div id=\"duel-commands\"></div>\n"
    "</section>\n";

}  // namespace

std::string league_page(const Results& results, const std::string& text) {
  const Plan& plan = results.plan;
  return experiment::page_html(
      {.title = plan.name + ": congestion control ranked",
       .heading = plan.name == "league" ? "Congestion-control league" : plan.name,
       .against = fmt::format("{} entries in {} scenarios, measured alike", plan.entries.size(),
                              plan.scenarios.size()),
       .facts = {{"size", std::string(to_text(plan.size))},
                 {"paired repetitions", std::to_string(plan.repetitions)},
                 {"intervals", fmt::format("{:g} %", plan.confidence * 100)},
                 {"seed", std::to_string(plan.seed)},
                 {"results version", results.version}},
       .contents = {{"standings", "Standings"},
                    {"map", "Heat map"},
                    {"duel", "Two side by side"},
                    {"entries", "Entries"},
                    {"scenarios", "Scenarios, every figure"},
                    {"method", "Method"}},
       .sections =
           fmt::format("{}{}{}{}{}{}", standings_html(results), kMapHtml, kDuelHtml,
                       entries_html(results), scenarios_html(results), method_html(results)),
       .style = league_style(),
       .script = league_script(),
       .charts = "Charts over time",
       .json = text});
}

}  // namespace paceline::league
