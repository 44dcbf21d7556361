#include <fmt/format.h>

#include <cmath>

#include "control/experiment/live/blocks/metric_words.h"
#include "control/experiment/live/report/live_charts.h"
#include "control/experiment/live/report/live_report.h"
#include "control/experiment/page/html_text.h"
#include "control/experiment/report/value_text.h"

namespace paceline::experiment::live {

namespace {

// Figures break behind commas, not before units.
std::string glued(const std::string& text) {
  constexpr const char* kNoBreakSpace = "\u00a0";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' && i > 0 && text[i - 1] != ',') {
      out += kNoBreakSpace;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Text for a contrast, the form in which the analysis has effects.
std::string contrast_words(BlockMetric metric, double contrast) {
  return glued(effect_words(metric, effect_of(metric, contrast)));
}

std::string contrast_words(BlockMetric metric, const Interval& contrasts) {
  return glued(interval_words(
      metric, {effect_of(metric, contrasts.low), effect_of(metric, contrasts.high)}));
}

std::string figure_words(BlockMetric metric, double value) {
  return glued(value_words(metric, value));
}

std::string number_words(double value) { return std::isfinite(value) ? significant(value) : "-"; }

class Table {
 public:
  explicit Table(const std::vector<std::string>& head) : out_(table_head("live", head)) {}
  void row(std::initializer_list<std::string> cells) {
    out_ += "<tr>";
    bool first = true;
    for (const std::string& cell : cells) {
      out_ += first ? fmt::format("<th scope=\"row\">{}</th>", html_escaped(cell))
                    : fmt::format("<td>{}</td>", html_escaped(cell));
      first = false;
    }
    out_ += "</tr>\n";
  }
  std::string text() const { return out_ + std::string(kTableEnd); }

 private:
  std::string out_;
};

std::string verdict_section(const LiveReport& r) {
  const LiveAnalysis& a = r.analysis;
  const char* name = a.verdict == Verdict::ship || a.verdict == Verdict::calibrated ? "better"
                     : a.verdict == Verdict::harmful || a.verdict == Verdict::invalid ||
                             a.verdict == Verdict::miscalibrated
                         ? "worse"
                         : "";
  std::string out = fmt::format(
      "<section id=\"verdict\">\n<h2>Verdict</h2>\n<p class=\"words {}\"><b>{}</b></p>\n<ul>\n",
      name, html_escaped(to_text(a.verdict)));
  for (const std::string& reason : a.reasons) {
    out += fmt::format("<li>{}</li>\n", html_escaped(reason));
  }
  return out + "</ul>\n</section>\n";
}

std::string figure(const char* id, std::string_view caption, const std::string& svg) {
  if (svg.empty()) return {};
  return fmt::format("<figure class=\"wide\" id=\"{}\"><figcaption>{}</figcaption>\n{}</figure>\n",
                     id, caption, svg);
}

std::string effect_section(const LiveReport& r) {
  const LiveAnalysis& a = r.analysis;
  std::vector<std::string> arms;
  for (const config::Arm& arm : r.plan.arms) arms.push_back(arm.name);
  std::string out = "<section id=\"effects\">\n<h2>Effects</h2>\n";
  out +=
      figure("course",
             "<b>Effect, pair by pair</b> <span>Line: mean so far; band: the interval that stays "
             "valid however often one looks.</span>",
             course_chart(r.plan.primary, a.course, r.plan.pairs_min));
  Table table({"metric", "role", "pairs", arms[0], arms[1], "effect", "interval (decision)",
               "bootstrap", "randomisation", "p"});
  for (const MetricResult& m : a.metrics) {
    const double p = m.role == MetricRole::exploratory ? m.p_adjusted : m.p;
    table.row({std::string(info(m.metric).label), std::string(to_text(m.role)), std::to_string(m.n),
               figure_words(m.metric, m.champion), figure_words(m.metric, m.candidate),
               contrast_words(m.metric, m.mean), contrast_words(m.metric, m.decision),
               contrast_words(m.metric, m.bootstrap), contrast_words(m.metric, m.randomised),
               p_text(p)});
  }
  out += table.text();
  if (a.explained > 0) {
    out += fmt::format(
        "<p class=\"remarks\">Offered load and size mix explain {:.0f} % of the variance of the "
        "primary metric; it is taken out.</p>\n",
        100 * a.explained);
  }
  out += figure("blocks", "<b>Every block</b> <span>Hollow, at the bottom: discarded.</span>",
                blocks_chart(r.plan.primary, r.records, arms));
  return out + "</section>\n";
}

std::string guards_section(const LiveReport& r) {
  Table table({"guard", "allowed", "bounds (one-sided)", "state"});
  for (const MetricResult& m : r.analysis.metrics) {
    if (m.role != MetricRole::guardrail) continue;
    table.row({std::string(info(m.metric).label), contrast_words(m.metric, m.limit),
               contrast_words(m.metric, m.guard),
               m.breached  ? "beyond its limit"
               : m.cleared ? "within its limit"
               : m.n == 0  ? "not measured"
                           : "not shown either way"});
  }
  const std::string& tripped = r.circumstances.hard_guard;
  return "<section id=\"guards\">\n<h2>Guards</h2>\n" + table.text() +
         fmt::format("<p>Hard guard of the service: {}.</p>\n</section>\n",
                     tripped.empty() ? "not tripped" : html_escaped(tripped));
}

std::string trust_section(const LiveReport& r) {
  const LiveAnalysis& a = r.analysis;
  std::string out = "<section id=\"trust\">\n<h2>Can it be trusted?</h2>\n";
  Table balance({"balance of", r.plan.arms[0].name, r.plan.arms[1].name, "p", "state"});
  for (const BalanceCheck& c : a.balance) {
    balance.row({c.name, number_words(c.observed[0]), number_words(c.observed[1]), p_text(c.p),
                 c.mismatch() ? "mismatch"
                 : c.stops    ? "as scheduled"
                              : "reported only (closed loop)"});
  }
  out += balance.text();
  if (a.interference.known) {
    const Interference& i = a.interference;
    const BlockMetric m = r.plan.primary;
    Table table({"effect", "estimate", "interval", "what it is"});
    table.row({"naive", contrast_words(m, i.naive), contrast_words(m, i.naive_interval),
               "candidate beside champion, at the same time"});
    table.row({"spillover", contrast_words(m, i.spillover), contrast_words(m, i.spillover_interval),
               "on champions beside candidates"});
    table.row({"total", contrast_words(m, i.total), contrast_words(m, i.total_interval),
               "everywhere against nowhere: what shipping it does"});
    out += "<h3>Interference</h3>\n" + table.text();
    out += fmt::format("<p>{}</p>\n",
                       i.interferes() ? fmt::format("A test side by side is off by {} here.",
                                                    html_escaped(contrast_words(m, i.gap)))
                                      : std::string("No interference between clusters is shown."));
  }
  if (!a.strata.empty()) {
    Table strata({"load from", "to", "pairs", "effect", "interval"});
    for (const StratumResult& s : a.strata) {
      strata.row({number_words(s.from), number_words(s.to), std::to_string(s.n),
                  contrast_words(r.plan.primary, s.mean),
                  contrast_words(r.plan.primary, s.sequence)});
    }
    out += "<h3>By load</h3>\n" + strata.text();
  }
  if (!a.discarded.empty()) {
    out += "<h3>Discarded pairs</h3>\n<ul>\n";
    for (const std::string& why : a.discarded) {
      out += fmt::format("<li>{}</li>\n", html_escaped(why));
    }
    out += "</ul>\n";
  }
  return out + "</section>\n";
}

std::string method_section(const LiveReport& r) {
  return fmt::format(
      "<section id=\"method\">\n<h2>Method, and how to repeat it</h2>\n<p>The datum is a block of "
      "time, never a message. Pairs of blocks were assigned before the start from the seed; plan "
      "and "
      "schedule are registered under the digest above. Decisions use the widest of three "
      "intervals.</p>\n<p class=\"command\"><code>{}</code></p>\n<details><summary>The "
      "plan</summary>\n<pre>{}</pre></details>\n<details><summary>All figures "
      "(JSON)</summary>\n<pre>{}</pre></details>\n</section>\n",
      html_escaped(r.replay), html_escaped(plan_text(r.plan)), html_escaped(live_report_json(r)));
}

}  // namespace

std::string live_report_page(const LiveReport& r) {
  const LiveAnalysis& a = r.analysis;
  const auto millis = [](std::uint64_t ns) { return significant(static_cast<double>(ns) / 1e6); };
  return page_html(
      {.title = r.plan.name,
       .heading = r.plan.name,
       .against = fmt::format("<b>{}</b> against <b>{}</b> (champion)",
                              html_escaped(r.plan.arms[1].name), html_escaped(r.plan.arms[0].name)),
       .facts = {{"design", std::string(to_text(r.plan.design))},
                 {"pairs", fmt::format("{} of {}, {} discarded", a.usable, r.schedule.pairs(),
                                       a.attempted - a.usable)},
                 {"block", fmt::format("{} ms, wash-out {} ms", millis(r.schedule.block_ns),
                                       millis(r.schedule.washout_ns))},
                 {"seed", std::to_string(r.plan.seed)},
                 {"paceline", r.version},
                 {"registered (SHA-256)", r.schedule.digest}},
       .contents = {},
       // No script at all: the charts are drawn already.
       .sections = verdict_section(r) + effect_section(r) + guards_section(r) + trust_section(r) +
                   method_section(r)});
}

}  // namespace paceline::experiment::live
