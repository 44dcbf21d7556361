#include "tools/workload/jobs/goal_lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::workload {

namespace {

bool in_goal_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

}  // namespace

void GoalLines::new_line() {
  ++at_;
  ++line_;
  line_begin_ = at_;
}

bool GoalLines::skip_comment(TableErrors& errors) {
  if (text_.substr(at_, 2) == "//") {
    at_ = std::min(text_.find('\n', at_), text_.size());
    return true;
  }
  const std::size_t end = text_.find("*/", at_ + 2);
  if (end == std::string_view::npos) {
    errors.add(here(), "this comment has no end: expected */");
    return false;
  }
  while (at_ < end + 2) {
    if (text_[at_] == '\n') {
      new_line();
    } else {
      ++at_;
    }
  }
  return true;
}

bool GoalLines::word(TextLine& line, TableErrors& errors) {
  const std::size_t begin = at_;
  const std::uint32_t at_column = column();
  const char c = text_[at_];
  if (c == ':' || c == '{' || c == '}') {
    ++at_;
  } else {
    while (at_ < text_.size() && in_goal_word(text_[at_])) ++at_;
  }
  if (at_ == begin) {
    errors.add(here(), fmt::format("character 0x{:02x}: expected letters, digits, _, :, {{ or }}",
                                   static_cast<unsigned char>(c)));
    return false;
  }
  line.words.push_back({text_.substr(begin, at_ - begin), line_, at_column});
  line.number = line_;
  line.end_column = column();
  return true;
}

bool GoalLines::next(TextLine& line, TableErrors& errors) {
  line.words.clear();
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const std::string_view two = text_.substr(at_, 2);
    if (c == '\n') {
      new_line();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (two == "//" || two == "/*") {
      if (!skip_comment(errors)) return false;
    } else if (!word(line, errors)) {
      return false;
    }
    if (!line.words.empty() && line_ != line.number) return true;
  }
  return !line.words.empty();
}

}  // namespace paceline::workload
