// How deep JSON text may be nested before it is given to a parser. The parser itself needs no stack
// for nested values, but what copies or prints them afterwards recurses.
#pragma once

#include <cstddef>
#include <string_view>

namespace paceline {

inline constexpr std::size_t kDeepestJson = 64;  // no document here is deeper than 20

// True where the text opens more than kDeepestJson arrays and objects one in another. Exact for
// JSON; where the text is not JSON, the parser finds the error before it gets so deep.
inline bool json_too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\') ++at;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace paceline
