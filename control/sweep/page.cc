#include "control/sweep/page.h"

#include <fmt/format.h>

#include "control/experiment/page/html_text.h"
#include "control/sweep/page_assets.h"

namespace paceline::sweep {

namespace {

using experiment::html_escaped;

constexpr std::string_view kMultiplesHtml =
    "<section id=\"charts\">\n<h2>Metrics over a key</h2>\n"
    "<p class=\"controls\"><label>over <select id=\"x-key\"></select></label> "
    "<label>coloured by <select id=\"by-key\"></select></label></p>\n"
    "<p class=\"remarks\">A dot is a point of the sweep, the mean of its repetitions. A line is "
    "the mean over the points that share both values, whatever else they differ in.</p>\n"
    "<p id=\"series\"></p>\n<div id=\"multiples\"></div>\n"
    "<noscript><p>The charts are drawn by a script. All figures are in the "
    "table.</p></noscript>\n</section>\n";

std::string points_html(const Results& results) {
  const std::vector<std::string> names = table_columns(results);
  std::vector<std::string> columns(results.plan.keys);
  for (std::size_t i = columns.size(); i < names.size(); ++i) columns.push_back("#" + names[i]);
  std::string out = "<section id=\"points\">\n<h2>Points</h2>\n";
  out += experiment::table_head("small", columns);
  for (std::size_t point = 0; point < results.plan.points(); ++point) {
    out += "<tr>";
    const std::vector<std::string> row = table_row(results, point);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool key = i < results.plan.keys.size();
      out += fmt::format("<td{}>{}</td>", key ? "" : " class=\"n\"", html_escaped(row[i]));
    }
    out += "</tr>\n";
  }
  return out + std::string(experiment::kTableEnd) + "</section>\n";
}

std::string method_html(const Results& results) {
  std::string out =
      "<section id=\"method\">\n<h2>Method, and how to repeat it</h2>\n<ul>\n"
      "<li>Virtual time: hosts run the transport and the algorithm that run on NICs; the fabric is "
      "emulated packet by packet. Results are the same on every machine.</li>\n"
      "<li>Repetition r has the same seed at every point. Points of one workload meet the same "
      "arrivals.</li>\n"
      "<li>Runs that did not finish count in no mean.</li>\n</ul>\n";
  out += experiment::table_head("small", {"metric", "meaning"});
  for (const experiment::Metric metric : headlines_of(results)) {
    const experiment::MetricSpec& spec = spec_of(metric);
    out += fmt::format("<tr><th scope=\"row\">{}</th><td class=\"prose\">{}</td></tr>\n",
                       html_escaped(spec.label), html_escaped(spec.meaning));
  }
  out += experiment::kTableEnd;
  out += fmt::format(
      "<p class=\"command\"><code>{}</code></p>\n<p id=\"downloads\"></p>\n"
      "<details><summary>The file</summary>\n<pre>{}</pre></details>\n",
      html_escaped(results.command), html_escaped(results.plan.text));
  return out + experiment::chart_licence_html() + "</section>\n";
}

}  // namespace

std::string sweep_page(const Results& results, const std::string& text) {
  const Plan& plan = results.plan;
  std::string keys;
  for (const std::string& key : plan.keys) {
    keys += (keys.empty() ? "over " : ", ") + html_escaped(key);
  }
  return experiment::page_html(
      {.title = plan.name + ": sweep",
       .heading = plan.name,
       .against = keys,
       .facts = {{"points", std::to_string(plan.points())},
                 {"repetitions", std::to_string(plan.repetitions)},
                 {"seed", std::to_string(plan.seed)},
                 {"results version", results.version}},
       .contents = {{"charts", "Charts"}, {"points", "Points"}, {"method", "Method"}},
       .sections =
           fmt::format("{}{}{}", kMultiplesHtml, points_html(results), method_html(results)),
       .style = sweep_style(),
       .script = sweep_script(),
       .charts = "Charts",
       .json = text});
}

}  // namespace paceline::sweep
