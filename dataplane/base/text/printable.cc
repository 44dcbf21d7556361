#include "dataplane/base/text/printable.h"

#include <array>
#include <cstddef>

namespace paceline {

namespace {

struct Character {
  std::size_t length = 1;
  char32_t code = 0;
  bool valid = false;
};

// The character at the beginning of `text`, by the rules of UTF-8 (RFC 3629): the shortest form, no
// surrogates, at most U+10FFFF.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead, true};
  const std::size_t length = lead >= 0xf0 && lead <= 0xf4   ? 4
                             : lead >= 0xe0 && lead <= 0xef ? 3
                             : lead >= 0xc2 && lead <= 0xdf ? 2
                                                            : 1;
  if (length == 1 || text.size() < length) return {};
  char32_t code = lead & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {length, code, true};
}

// Controls (C0, DEL, C1), line and paragraph separators, marks and overrides of direction.
bool shown_as_it_is(char32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  return code != 0x061c && code != 0xfeff && !(code >= 0x200e && code <= 0x200f) &&
         !(code >= 0x2028 && code <= 0x202e) && !(code >= 0x2066 && code <= 0x2069);
}

void append_escape(std::string& out, char32_t code, bool wide) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += wide ? "\\u" : "\\x";
  for (int shift = wide ? 12 : 4; shift >= 0; shift -= 4) {
    out += kDigits[(code >> static_cast<unsigned>(shift)) & 0xfU];
  }
}

std::string replaced(std::string_view text, bool keep_line_ends) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    if (!character.valid) {
      append_escape(out, static_cast<unsigned char>(text.front()), false);
    } else if (shown_as_it_is(character.code) || (keep_line_ends && character.code == '\n')) {
      out += text.substr(0, character.length);
    } else {
      append_escape(out, character.code, character.code >= 0x80);
    }
    text.remove_prefix(character.length);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return replaced(text, false); }

std::string printable_lines(std::string_view text) { return replaced(text, true); }

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character character = first_character(text);
    if (!character.valid) return false;
    text.remove_prefix(character.length);
  }
  return true;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string out = "\"";
  const bool longer = text.size() > kMost;
  while (!text.empty() && out.size() <= kMost) {
    const Character character = first_character(text);
    const bool control = character.code < 0x20 || character.code == 0x7f;
    if (character.valid && !control) {
      out += text.substr(0, character.length);
    } else {
      out += '?';
    }
    text.remove_prefix(character.length);
  }
  out += longer ? "...\"" : "\"";
  return out;
}

}  // namespace paceline
