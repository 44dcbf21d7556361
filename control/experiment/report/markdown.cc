// The report as Markdown: one table per scenario and arm.
#include <fmt/format.h>

#include "control/experiment/report/report.h"
#include "control/experiment/report/table.h"
#include "control/experiment/report/value_text.h"

namespace paceline::experiment {
namespace {

// Names come from files people write: nothing in them may end a cell or start markup.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '>' || c == '*' || c == '_' || c == '`' || c == '[' ||
        c == ']' || c == '\\') {
      result += '\\';
    }
    result += c;
  }
  return result;
}

void append_list(std::string& out, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) out += fmt::format("- {}\n", escaped(line));
}

}  // namespace

std::string format_markdown(const Analysis& analysis, const TableOptions& options) {
  const Report report = report_of(analysis, options.all_metrics);
  std::string out = fmt::format("# {}\n\n", escaped(report.heading.front()));
  for (std::size_t i = 1; i < report.heading.size(); ++i) {
    out += fmt::format("{}  \n", escaped(report.heading[i]));
  }
  for (const ReportBlock& block : report.blocks) {
    out += fmt::format("\n## {}\n\n", escaped(block.title));
    out += fmt::format("| metric | {} | {} | effect | interval | p | verdict | role |\n",
                       escaped(block.baseline_name), escaped(block.arm_name));
    out += "|---|---:|---:|---:|---|---:|---|---|\n";
    for (const ReportRow& row : block.rows) {
      out +=
          fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", escaped(row.label),
                      with_unit(row.baseline, row.unit), with_unit(row.arm, row.unit), row.effect,
                      escaped(row.interval), escaped(row.p), row.verdict_text, to_text(row.role));
    }
    if (!block.remarks.empty()) out += '\n';
    append_list(out, block.remarks);
  }
  out += "\n## Summary\n\n";
  append_list(out, report.summary);
  for (const Report::Losses& losses : report.losses) {
    out += fmt::format("\n## Where {} does not win\n\n", escaped(losses.arm));
    if (losses.lines.empty()) out += "Every primary metric is better, and no metric is worse.\n";
    append_list(out, losses.lines);
  }
  if (!report.notes.empty()) out += "\n## Notes\n\n";
  append_list(out, report.notes);
  return out;
}

}  // namespace paceline::experiment
