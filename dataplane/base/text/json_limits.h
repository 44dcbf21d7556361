// The limits of JSON text before it is given to a parser. The parser needs no stack for nested
// values, but code that copies or prints them afterwards recurses; and the parser gathers a number
// of any length before it converts it.
#pragma once

#include <cstddef>
#include <string_view>

namespace paceline {

inline constexpr std::size_t kDeepestJson = 64;        // no document here is deeper than 20
inline constexpr std::size_t kLongestJsonNumber = 64;  // a double has at most 24 characters

// What exceeds the limits, and at which byte; `what` is empty if nothing does.
struct JsonExcess {
  std::string_view what;
  std::size_t at = 0;
  explicit operator bool() const { return !what.empty(); }
};

// The first array or object beyond kDeepestJson, or number beyond kLongestJsonNumber. Exact for
// JSON; where the text is not JSON, the parser finds the error before it gets so far.
inline JsonExcess json_excess(std::string_view text) {
  std::size_t depth = 0;
  std::size_t digits = 0;  // of what may be one number
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\') ++at;
      if (c == '"') quoted = false;
      continue;
    }
    const bool in_number = (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+';
    if (!in_number && c != 'e' && c != 'E') {
      digits = 0;
    } else if (++digits > kLongestJsonNumber) {
      return {"a number of more than 64 characters", at + 1 - digits};
    }
    if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return {"nested deeper than 64 levels", at};
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return {};
}

}  // namespace paceline
