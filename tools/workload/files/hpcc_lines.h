// Shared by the text formats of the HPCC simulator and of SimAI.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "dataplane/config/scenario.h"
#include "tools/workload/files/text_table.h"

namespace paceline::workload {

inline constexpr std::size_t kLongestHpccFile = std::size_t{1} << 30;

// Rate, delay and error rate of a line `a b rate delay error_rate`.
void read_link_figures(const TextTable& table, const std::vector<Word>& words,
                       config::LinkSpec& link, TableErrors& errors);

// Calls read() with each of the `announced` link lines in `line`. A line without 5 columns is an
// error; so is the end of the text before the last line.
template <class Read>
void for_each_link_line(TextTable& table, TextLine& line, std::uint32_t head,
                        std::uint64_t announced, TableErrors& errors, Read&& read) {
  for (std::uint64_t i = 0; i < announced && !errors.full(); ++i) {
    if (!table.next(line)) {
      errors.add(table.end(), fmt::format("truncated: line {} announces {} links, the file has {}",
                                          head, announced, i));
      return;
    }
    if (line.words.size() != 5) {
      errors.add(
          table.behind(line),
          fmt::format("{} columns: expected 5, `a b rate delay error_rate`", line.words.size()));
      continue;
    }
    read();
  }
}

// After the `announced` lines: nothing, or a blank line and notes that do not look like data.
inline void check_trailing_lines(TextTable& table, std::string_view what, std::uint64_t announced,
                                 TableErrors& errors) {
  if (errors.full()) return;
  TextLine line;
  bool notes = false;
  while (table.next(line)) {
    const Word& word = line.words.front();
    const char c = word.text.front();
    notes = notes || line.after_blank;
    if (notes && !(c >= '0' && c <= '9') && c != '-' && c != '+') continue;
    errors.add(table.where(word),
               fmt::format("trailing data after the {} {} that line 1 announces", announced, what));
    return;
  }
}

}  // namespace paceline::workload
