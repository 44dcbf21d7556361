// The lines of a GOAL file as words: names and numbers, and `:`, `{`, `}` each by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tools/workload/files/text_table.h"

namespace paceline::workload {

// Walks a text; it must outlive the reader. Skips comments, `//` and `/* */`, and blank lines.
class GoalLines {
 public:
  GoalLines(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {}

  // The next line with a word in it; false at the end, or behind an error, which is added.
  bool next(TextLine& line, TableErrors& errors);
  // Where the text ends.
  config::Where end() const { return here(); }

 private:
  config::Where here() const { return {source_, line_, column()}; }
  std::uint32_t column() const { return static_cast<std::uint32_t>(at_ - line_begin_ + 1); }
  void new_line();
  bool skip_comment(TableErrors& errors);
  bool word(TextLine& line, TableErrors& errors);

  std::string_view text_;
  std::string source_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace paceline::workload
