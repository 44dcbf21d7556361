#include "control/experiment/page/report_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/experiment/page/html_text.h"
#include "control/experiment/page/page_assets.h"
#include "control/experiment/page/report_parts.h"
#include "control/experiment/report/report.h"
#include "control/experiment/report/verdict_words.h"

namespace paceline::experiment {
namespace {

std::string list_html(const std::vector<std::string>& lines, const char* name) {
  std::string out = fmt::format("<ul class=\"{}\">\n", name);
  for (const std::string& line : lines) out += fmt::format("<li>{}</li>\n", html_escaped(line));
  return out + "</ul>\n";
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
  return out + chart_licence_html() + "</section>\n";
}

}  // namespace

std::string report_page(const Results& results, const Analysis& analysis,
                        const std::string& results_name) {
  const Reproduce reproduce(results, results_name);
  const PageContext page{results, analysis, reproduce};
  const Report report = report_of(analysis, false);
  const AnalysisPlan& plan = analysis.plan;
  const std::vector<std::string> others(plan.arms.begin() + (plan.arms.empty() ? 0 : 1),
                                        plan.arms.end());
  Page whole{.title = report.heading.front(),
             .heading = plan.name,
             .against = fmt::format("<b>{}</b> against <b>{}</b> (baseline)",
                                    html_escaped(fmt::format("{}", fmt::join(others, ", "))),
                                    plan.arms.empty() ? "?" : html_escaped(plan.arms[0])),
             .facts = {{"scenarios", std::to_string(plan.scenarios.size())},
                       {"paired repetitions", std::to_string(plan.repetitions)},
                       {"seed", std::to_string(plan.seed)},
                       {"runs", std::to_string(results.runs.size())},
                       {"results version", results.version},
                       {"content hash", fmt::format("{:016x}", content_hash(results, analysis))}},
             .contents = {{"words", "In words"}, {"effects", "Effects"}},
             .sections = {},
             .script = page_script(),
             .charts = "Charts",
             .json = results_text(results, analysis)};
  std::string& out = whole.sections;
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
  for (std::size_t i = 0; i < plan.scenarios.size(); ++i) {
    whole.contents.emplace_back(anchor_of(i), plan.scenarios[i]);
    out += scenario_section(page, i);
  }
  whole.contents.insert(whole.contents.end(),
                        {{"costs", "Costs and limits"}, {"method", "Method"}});
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
  return page_html(whole);
}

}  // namespace paceline::experiment
