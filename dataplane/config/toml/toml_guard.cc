#include "dataplane/config/toml/toml_guard.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace paceline::config {

namespace {

// Follows only strings, comments and brackets. If it could understand a document differently from
// the parser, the parser has found an error before and reads no further.
class Guard {
 public:
  Guard(std::string_view text, const std::string& source, Diagnostics& errors)
      : text_(text), source_(source), errors_(errors) {}

  bool run() {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) skip(kByteOrderMark.size());
    bool line_begins = true;
    while (!at_end()) {
      const char c = peek();
      if (c == '\n') {
        line_begins = true;
        header_ = false;
        dots_ = 0;
        skip(1);
      } else if (c == ' ' || c == '\t' || c == '\r') {
        skip(1);
      } else if (line_begins && c == '[' && depth_ == 0) {
        line_begins = false;
        header_ = true;
        if (!header_has_name()) return false;
      } else {
        line_begins = false;
        if (!other(c)) return good_;
      }
    }
    return good_;
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  // Columns count characters, as the parser's do.
  void skip(std::size_t bytes) {
    for (; bytes > 0 && !at_end(); --bytes, ++at_) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '\n') {
        ++line_;
        column_ = 1;
      } else if ((c & 0xC0U) != 0x80U) {
        ++column_;
      }
    }
  }

  void fail(std::string message) {
    errors_.add({source_, line_, column_}, std::move(message));
    good_ = false;
  }

  bool too_deep() {
    fail(fmt::format("nested deeper than {} levels", kDeepestToml));
    return false;
  }

  static bool is_quote(char c) { return c == '"' || c == '\''; }

  static bool starts_key(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || is_quote(c);
  }

  bool header_has_name() {
    skip(1);
    if (peek() == '[') skip(1);
    while (peek() == ' ' || peek() == '\t') skip(1);
    // An empty name is an error that the parser words better.
    if (starts_key(peek()) || peek() == ']') return true;
    fail("not valid TOML: expected the name of a table");
    return false;
  }

  // One character, string or comment; false to stop.
  bool other(char c) {
    if (c == '.') {
      if (++dots_ >= kDeepestToml) return too_deep();
    } else if (!starts_key(c)) {
      dots_ = 0;
    }
    if (c == '#') {
      while (!at_end() && peek() != '\n') skip(1);
    } else if (is_quote(c)) {
      return string(c);
    } else if ((static_cast<unsigned char>(c) & 0x80U) != 0) {
      fail("not valid TOML: a character beyond ASCII outside quotes");
      return false;
    } else {
      if (!header_ && (c == '[' || c == '{') && ++depth_ > kDeepestToml) return too_deep();
      if (!header_ && (c == ']' || c == '}') && depth_ > 0) --depth_;
      skip(1);
    }
    return true;
  }

  // False at a string that does not end: the parser reports it.
  bool string(char quote) {
    const bool block = peek(1) == quote && peek(2) == quote;
    skip(block ? 3 : 1);
    while (!at_end()) {
      const char c = peek();
      if (c == '\\' && quote == '"') {
        skip(2);
      } else if (c == '\n' && !block) {
        return false;
      } else if (c == quote && !block) {
        skip(1);
        return true;
      } else if (c == quote && peek(1) == quote && peek(2) == quote) {
        while (peek() == quote) skip(1);  // up to two of them may belong to the text
        return true;
      } else {
        skip(1);
      }
    }
    return false;
  }

  std::string_view text_;
  const std::string& source_;
  Diagnostics& errors_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t column_ = 1;
  std::size_t depth_ = 0;  // open brackets and braces of values
  std::size_t dots_ = 0;   // since what can be no part of a dotted key
  bool header_ = false;    // on the line of a table header
  bool good_ = true;
};

}  // namespace

bool check_toml_text(std::string_view text, const std::string& source, Diagnostics& errors) {
  return Guard(text, source, errors).run();
}

}  // namespace paceline::config
