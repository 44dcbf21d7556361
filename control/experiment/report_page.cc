#include "control/experiment/report_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/experiment/html_text.h"
#include "control/experiment/page_assets.h"
#include "control/experiment/report.h"
#include "control/experiment/report_parts.h"
#include "control/experiment/verdict_words.h"

namespace paceline::experiment {
namespace {

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

std::string list_html(const std::vector<std::string>& lines, const char* name) {
  std::string out = fmt::format("<ul class=\"{}\">\n", name);
  for (const std::string& line : lines) out += fmt::format("<li>{}</li>\n", html_escaped(line));
  return out + "</ul>\n";
}

std::string header_html(const PageContext& page) {
  const AnalysisPlan& plan = page.analysis.plan;
  const std::vector<std::string> others(plan.arms.begin() + (plan.arms.empty() ? 0 : 1),
                                        plan.arms.end());
  std::string out = fmt::format(
      "<header>\n<h1>{}</h1>\n<p class=\"against\"><b>{}</b> against <b>{}</b> "
      "(baseline)</p>\n<dl>",
      html_escaped(plan.name), html_escaped(fmt::format("{}", fmt::join(others, ", "))),
      plan.arms.empty() ? "?" : html_escaped(plan.arms[0]));
  const auto fact = [&out](const char* name, const std::string& value) {
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, html_escaped(value));
  };
  fact("scenarios", std::to_string(plan.scenarios.size()));
  fact("paired repetitions", std::to_string(plan.repetitions));
  fact("seed", std::to_string(plan.seed));
  fact("runs", std::to_string(page.results.runs.size()));
  fact("results version", page.results.version);
  fact("content hash", fmt::format("{:016x}", content_hash(page.results, page.analysis)));
  out +=
      "</dl>\n<nav aria-label=\"Contents\"><a href=\"#words\">In words</a> <a "
      "href=\"#effects\">Effects</a>";
  for (std::size_t i = 0; i < plan.scenarios.size(); ++i) {
    out += fmt::format(" <a href=\"#{}\">{}</a>", anchor_of(i), html_escaped(plan.scenarios[i]));
  }
  return out +
         " <a href=\"#costs\">Costs and limits</a> <a href=\"#method\">Method</a></nav>\n"
         "</header>\n";
}

std::string words_html(const PageContext& page, const Report& report) {
  std::string out = "<section id=\"words\">\n<h2>In words</h2>\n<ul class=\"verdicts\">\n";
  for (const Comparison& comparison : page.analysis.comparisons) {
    const VerdictWords words = verdict_words(comparison, page.analysis.plan);
    out += fmt::format("<li class=\"{}\"><b>{}</b>: {} <span class=\"losses\">{}</span></li>\n",
                       verdict_class(words.verdict), html_escaped(comparison.scenario),
                       html_escaped(words.sentence), html_escaped(words.losses));
  }
  out += "</ul>\n";
  // The lines of single scenarios stand above; here follow those across scenarios.
  const std::size_t summaries = page.analysis.summaries.size();
  if (summaries != 0) {
    out += list_html(
        {report.summary.end() - static_cast<std::ptrdiff_t>(summaries), report.summary.end()},
        "summaries");
  }
  for (const Report::Losses& losses : report.losses) {
    if (losses.lines.empty()) {
      out += fmt::format("<p>{}: every primary metric is better, and no metric is worse.</p>\n",
                         html_escaped(losses.arm));
    } else {
      out += fmt::format(
          "<details><summary>Where {} does not win: {} metrics, with their "
          "intervals</summary>\n{}</details>\n",
          html_escaped(losses.arm), losses.lines.size(), list_html(losses.lines, "losing"));
    }
  }
  if (!report.notes.empty()) out += "<h3>Notes</h3>\n" + list_html(report.notes, "notes");
  return out + "</section>\n";
}

std::string method_html(const PageContext& page, const Report& report) {
  std::string out = "<section id=\"method\">\n<h2>Method, and how to repeat it</h2>\n";
  out += list_html(report.heading, "method");
  out += list_html(report.legend, "legend");
  out +=
      "<p>Every repetition replays the same arrivals under every arm in virtual time. The datum is "
      "a repetition, never a message. Results are deterministic: the same file and seed give the "
      "same content hash on every machine.</p>\n";
  if (!page.reproduce.knows_file()) {
    out +=
        "<p>These results do not name the file of the experiment. Save the text below as "
        "<code>experiment.toml</code> for the commands of this page.</p>\n";
  }
  out += fmt::format(
      "<p class=\"command\"><code>{}</code></p>\n<p class=\"command\"><code>{}</code></p>\n",
      html_escaped(page.reproduce.experiment()), html_escaped(page.reproduce.page()));
  out += fmt::format(
      "<p id=\"downloads\"></p>\n<details><summary>The experiment file, with its "
      "overrides</summary>\n<pre id=\"configuration\">{}</pre></details>\n",
      html_escaped(page.results.configuration));
  if (report_has_charts()) {
    out += fmt::format(
        "<details><summary>Licence of the chart library</summary>\n<pre>{}</pre>"
        "</details>\n",
        html_escaped(page_chart_licence()));
  }
  return out + "</section>\n";
}

}  // namespace

bool report_has_charts() { return !page_chart_library().empty(); }

std::string report_page(const Results& results, const Analysis& analysis,
                        const std::string& results_name) {
  const Reproduce reproduce(results, results_name);
  const PageContext page{results, analysis, reproduce};
  const Report report = report_of(analysis, false);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" content=\"{}\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"generator\" "
      "content=\"paceline\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>{}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n",
      kPolicy, html_escaped(report.heading.front()));
  out += page_style();
  out += "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#words\">Skip to the results</a>\n";
  out += header_html(page);
  out += "<main>\n";
  if (!report_has_charts()) {
    out +=
        "<p class=\"no-charts\">Charts were left out: this paceline was built without D3 (Debian: "
        "libjs-d3). All tables are here.</p>\n";
  }
  out += words_html(page, report);
  out += "<section id=\"effects\">\n<h2>Effects</h2>\n" + overview_table(analysis);
  out +=
      figure_html({"overview-effects",
                   "overview",
                   -1,
                   "Primary metrics and summaries",
                   "Dot: improvement factor; whisker: its interval. Right of 1 the arm is better "
                   "than the baseline, left of it worse. For times and slowdown the factor is "
                   "baseline over arm, for efficiency arm over baseline.",
                   {reproduce.experiment()},
                   true});
  out += "</section>\n";
  for (std::size_t i = 0; i < analysis.plan.scenarios.size(); ++i) {
    out += scenario_section(page, i);
  }
  out += "<section id=\"costs\">\n<h2>Costs and limits</h2>\n<div class=\"figures\">\n";
  out += figure_html({"costs-limiters",
                      "limiters",
                      -1,
                      "What held senders back",
                      "Of the time in which congestion contexts had data to send: which bound held "
                      "them back. From the mean shares over the repetitions.",
                      {reproduce.experiment()},
                      true});
  out += "</div>\n" + limits_table(page) + "<div class=\"figures\">\n";
  out += figure_html({"costs-bars",
                      "costs",
                      -1,
                      "Overhead, losses, pauses",
                      "Mean over the repetitions. Each column has its own scale; a column in which "
                      "every arm is 0 is left out.",
                      {reproduce.experiment()},
                      true});
  out += "</div>\n" + costs_table(page) + "</section>\n";
  out += method_html(page, report);
  out += "</main>\n<script type=\"application/json\" id=\"results\">\n";
  out += json_in_script(results_text(results, analysis));
  out += "</script>\n";
  if (report_has_charts()) {
    out += "<script>\n";
    out += page_chart_library();
    out += "\n</script>\n";
  }
  out += "<script>\n";
  out += page_script();
  out += "</script>\n</body>\n</html>\n";
  return out;
}

}  // namespace paceline::experiment
