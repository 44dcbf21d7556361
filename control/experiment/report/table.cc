#include "control/experiment/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "control/experiment/report/report.h"
#include "control/experiment/text/wrapped_text.h"

namespace paceline::experiment {
namespace {

constexpr std::size_t kTextWidth = 108;  // of sentences

struct Widths {
  std::size_t label = 6, baseline = 8, arm = 8, unit = 4, effect = 9, interval = 16, p = 5;
};

void widen(std::size_t& width, const std::string& text) { width = std::max(width, text.size()); }

Widths widths_of(const Report& report) {
  Widths widths;
  for (const ReportBlock& block : report.blocks) {
    widen(widths.baseline, block.baseline_name);
    widen(widths.arm, block.arm_name);
    for (const ReportRow& row : block.rows) {
      widen(widths.label, row.label);
      widen(widths.baseline, row.baseline);
      widen(widths.arm, row.arm);
      widen(widths.unit, row.unit);
      widen(widths.effect, row.effect);
      widen(widths.interval, row.interval);
      widen(widths.p, row.p);
    }
  }
  return widths;
}

char mark_of(Role role) {
  if (role == Role::primary) return 'P';
  return role == Role::guardrail ? 'G' : ' ';
}

std::string painted(const ReportRow& row, bool color) {
  if (!color) return row.verdict_text;
  if (row.verdict == Verdict::better) return fmt::format("\x1b[32m{}\x1b[0m", row.verdict_text);
  if (row.verdict == Verdict::worse) return fmt::format("\x1b[31m{}\x1b[0m", row.verdict_text);
  return row.verdict_text;
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line;
  out += '\n';
}

// A sentence; further lines are indented by two more.
void append_wrapped(std::string& out, const std::string& text, std::size_t indent) {
  out += wrapped(text, indent, indent + 2, kTextWidth);
}

void append_block(std::string& out, const ReportBlock& block, const Widths& w, bool color) {
  append_line(out, block.title);
  append_line(out,
              fmt::format("   {:<{}}  {:>{}}  {:>{}} {:<{}}  {:>{}}  {:<{}}  {:>{}}  verdict",
                          "metric", w.label, block.baseline_name, w.baseline, block.arm_name, w.arm,
                          "", w.unit, "effect", w.effect, "interval", w.interval, "p", w.p));
  for (const ReportRow& row : block.rows) {
    append_line(out, fmt::format(" {} {:<{}}  {:>{}}  {:>{}} {:<{}}  {:>{}}  {:<{}}  {:>{}}  {}",
                                 mark_of(row.role), row.label, w.label, row.baseline, w.baseline,
                                 row.arm, w.arm, row.unit, w.unit, row.effect, w.effect,
                                 row.interval, w.interval, row.p, w.p, painted(row, color)));
  }
  for (const std::string& remark : block.remarks) append_wrapped(out, remark, 3);
  out += '\n';
}

}  // namespace

std::string format_table(const Analysis& analysis, const TableOptions& options) {
  const Report report = report_of(analysis, options.all_metrics);
  const Widths widths = widths_of(report);
  std::string out;
  for (const std::string& line : report.heading) append_wrapped(out, line, 0);
  out += '\n';
  for (const ReportBlock& block : report.blocks) append_block(out, block, widths, options.color);
  for (const std::string& line : report.legend) append_line(out, " " + line);
  append_line(out, "\nSummary");
  for (const std::string& line : report.summary) append_wrapped(out, line, 3);
  for (const Report::Losses& losses : report.losses) {
    append_line(out, fmt::format("\nWhere {} does not win", losses.arm));
    if (losses.lines.empty()) {
      append_line(out, "   Every primary metric is better, and no metric is worse.");
    }
    for (const std::string& line : losses.lines) append_wrapped(out, line, 3);
  }
  if (!report.notes.empty()) append_line(out, "\nNotes");
  for (const std::string& note : report.notes) append_wrapped(out, note, 3);
  return out;
}

}  // namespace paceline::experiment
