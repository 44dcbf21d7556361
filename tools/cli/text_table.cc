#include "tools/cli/text_table.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

namespace paceline::tools {

namespace {

constexpr std::size_t kGap = 2;

// SGR sequences (ECMA-48), by Style: those that every terminal with colours has.
constexpr std::array<const char*, 5> kBegin{"", "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[1;31m"};

}  // namespace

std::string styled(const std::string& text, Style style, bool colour) {
  if (!colour || style == Style::plain || text.empty()) return text;
  return kBegin[static_cast<std::size_t>(style)] + text + "\x1b[0m";
}

std::vector<std::string> TextTable::lines(std::size_t width, bool colour) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t longest = std::max(columns_[c].width, columns_[c].head.size());
    for (const auto& row : rows_) longest = std::max(longest, row[c].text.size());
    widths.push_back(longest);
  }
  std::vector<std::size_t> shown(columns_.size());
  std::iota(shown.begin(), shown.end(), 0);
  const auto total = [&] {
    std::size_t sum = 0;
    for (const std::size_t c : shown) sum += widths[c] + kGap;
    return sum - kGap;
  };
  while (width != 0 && total() > width) {
    const auto least = std::max_element(
        shown.begin(), shown.end(),
        [&](std::size_t a, std::size_t b) { return columns_[a].rank < columns_[b].rank; });
    if (columns_[*least].rank == 0) break;
    shown.erase(least);
  }
  const auto line_of = [&](const auto& cell_of) {
    std::string line;
    std::size_t used = 0;
    std::size_t owed = 0;  // spaces before the next text: none at the end of a line
    for (const std::size_t c : shown) {
      Cell cell = cell_of(c);
      const std::size_t padding = widths[c] - std::min(widths[c], cell.text.size());
      if (!columns_[c].left) owed += padding;
      if (!cell.text.empty()) {
        if (width != 0 && used + owed >= width) break;
        if (width != 0) cell.text.resize(std::min(cell.text.size(), width - used - owed));
        line += std::string(owed, ' ') + styled(cell.text, cell.style, colour);
        used += owed + cell.text.size();
        owed = 0;
      }
      owed += kGap + (columns_[c].left ? padding : 0);
    }
    return line;
  };
  std::vector<std::string> out;
  out.push_back(line_of([&](std::size_t c) { return Cell{columns_[c].head, Style::head}; }));
  for (const auto& row : rows_) out.push_back(line_of([&](std::size_t c) { return row[c]; }));
  return out;
}

}  // namespace paceline::tools
