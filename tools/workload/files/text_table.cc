#include "tools/workload/files/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace paceline::workload {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

}  // namespace

bool TextTable::next(TextLine& line) {
  line.words.clear();
  line.after_blank = false;
  while (!rest_.empty()) {
    ++line_;
    const std::size_t length = std::min(rest_.find('\n'), rest_.size());
    std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(std::min(length + 1, rest_.size()));
    last_length_ = static_cast<std::uint32_t>(length);
    text = text.substr(0, text.find('#'));
    for (std::size_t i = 0; i < text.size();) {
      if (is_space(text[i])) {
        ++i;
        continue;
      }
      std::size_t j = i;
      while (j < text.size() && !is_space(text[j])) ++j;
      line.words.push_back({text.substr(i, j - i), line_, static_cast<std::uint32_t>(i + 1)});
      i = j;
    }
    if (!line.words.empty()) {
      line.number = line_;
      const Word& last = line.words.back();
      line.end_column = last.column + static_cast<std::uint32_t>(last.text.size());
      return true;
    }
    if (length == 0 || text.size() == length) line.after_blank = true;
  }
  return false;
}

config::Where TextTable::end() const {
  return {source_, std::max(line_, 1U), line_ == 0 ? 1U : last_length_ + 1};
}

void TableErrors::add(const config::Where& where, const std::string& message) {
  if (count_++ < kLimit) entries_.add(where, message);
}

std::vector<std::string> TableErrors::list() const {
  std::vector<std::string> out = entries_.sorted();
  if (count_ > kLimit) out.push_back(fmt::format("and more, after the first {} errors", kLimit));
  return out;
}

config::Read<std::string> read_table_file(const std::string& path, std::size_t max_bytes) {
  config::Read<std::string> out = config::read_text_file(path, max_bytes);
  std::uint32_t line = 1;
  for (std::string_view rest = out.value; !rest.empty(); ++line) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    if (length > kLongestLine) {
      out.errors.push_back(fmt::format("{}:{}: a line of {} characters; allowed are {}", path, line,
                                       length, kLongestLine));
      break;
    }
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  return out;
}

bool read_integer(const TextTable& table, const Word& word, std::string_view what,
                  std::uint64_t min, std::uint64_t max, std::uint64_t& out, TableErrors& errors) {
  const char* end = word.text.data() + word.text.size();
  const auto [stop, code] = std::from_chars(word.text.data(), end, out);
  if (code == std::errc{} && stop == end && out >= min && out <= max) return true;
  errors.add(table.where(word), fmt::format("{} = \"{}\": expected an integer in [{} .. {}]", what,
                                            word.text, min, max));
  out = min;
  return false;
}

bool read_number(const TextTable& table, const Word& word, std::string_view what, double min,
                 double max, double& out, TableErrors& errors) {
  const char* end = word.text.data() + word.text.size();
  const auto [stop, code] = std::from_chars(word.text.data(), end, out);
  if (code == std::errc{} && stop == end && std::isfinite(out) && out >= min && out <= max) {
    return true;
  }
  errors.add(table.where(word), fmt::format("{} = \"{}\": expected a number in [{} .. {}]", what,
                                            word.text, min, max));
  out = min;
  return false;
}

}  // namespace paceline::workload
