#include "tools/diagnose/diagnosis_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/experiment/page/html_text.h"
#include "tools/diagnose/diagnosis_charts.h"
#include "tools/diagnose/diagnosis_text.h"

namespace paceline::tools {

namespace {

using diagnosis::Evidence;
using diagnosis::Verdict;
using experiment::html_escaped;

constexpr std::size_t kMostNics = 64;  // rows and columns of the matrix

std::string verdict_item(const Verdict& verdict) {
  std::string out = fmt::format("<li class=\"{}\"><b>{} {}</b>, confidence {:.2f} ({})",
                                is_fault(verdict.cause) ? "worse" : "", name_of(verdict.cause),
                                html_escaped(verdict.culprit), verdict.confidence,
                                name_of(place_of(verdict.cause)));
  if (!verdict.or_else.empty()) {
    out += html_escaped(fmt::format(", or {}", fmt::join(verdict.or_else, ", ")));
  }
  for (const std::string& line : verdict.evidence) out += "<br>" + html_escaped(line);
  return out + fmt::format("<br><i>Next: {}</i></li>\n", html_escaped(advice_of(verdict.cause)));
}

std::string figure(const char* id, std::string_view caption, const std::string& svg) {
  if (svg.empty()) return {};
  return fmt::format("<figure class=\"wide\" id=\"{}\"><figcaption>{}</figcaption>\n{}</figure>\n",
                     id, caption, svg);
}

}  // namespace

std::string diagnosis_page(const std::string& name, std::uint64_t seed, const Evidence& evidence,
                           const std::vector<Verdict>& verdicts) {
  std::string sections = "<section id=\"verdicts\">\n<h2>Verdicts</h2>\n<ul class=\"verdicts\">\n";
  for (const Verdict& verdict : verdicts) sections += verdict_item(verdict);
  const auto fault = std::find_if(verdicts.begin(), verdicts.end(),
                                  [](const Verdict& v) { return is_fault(v.cause); });
  if (fault == verdicts.end())
    sections += "<li>No fault: nothing stands out for long enough.</li>\n";
  sections += "</ul>\n</section>\n";

  const std::string culprit = verdicts.empty() ? std::string() : verdicts.front().culprit;
  const std::string whose =
      culprit.empty() ? std::string("<b>Over time</b> <span>all queue pairs</span>")
                      : fmt::format(
                            "<b>Over time</b> <span>orange: queue pairs that {} concerns; "
                            "blue: the others</span>",
                            html_escaped(culprit));
  sections += "<section id=\"evidence\">\n<h2>Evidence</h2>\n";
  sections += figure("timeline", whose, timeline_chart(evidence, culprit));
  sections += figure("matrix",
                     "<b>Who is slow with whom</b> <span>Rows send, columns receive: the time of "
                     "messages over the ideal, median. Full colour: four times the usual.</span>",
                     matrix_chart(evidence, slowest_nics(evidence, kMostNics)));
  sections += "</section>\n";
  return experiment::page_html(
      {.title = "Diagnosis of " + name,
       .heading = "Diagnosis of " + name,
       .against = "What holds it up, from what hosts measure",
       .facts = {{"NICs", std::to_string(evidence.nics.size())},
                 {"queue pairs", std::to_string(evidence.pairs.size())},
                 {"watched",
                  fmt::format("{:.3f} ms", static_cast<double>(evidence.until.count) / 1e9)},
                 {"seed", std::to_string(seed)}},
       .contents = {},
       .sections = sections});
}

}  // namespace paceline::tools
