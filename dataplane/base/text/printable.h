// Foreign text on its way to a terminal or a log: names of programs, reasons in a journal, values
// of a file. Escape sequences in it must not reach the reader.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// UTF-8 in which every control character, every character that changes the direction of text, and
// every byte that is not UTF-8 is replaced by its escape in hexadecimal: "\x1b", "\u202e". The
// result is one line: line ends are replaced, too.
std::string printable(std::string_view text);

// The same for a text of several lines: '\n' stays.
std::string printable_lines(std::string_view text);

// Well-formed UTF-8 (no overlong forms, surrogates or values above 10FFFF).
bool is_utf8(std::string_view text);

// For messages: at most 60 bytes of it, in quotes, control characters and broken UTF-8 replaced by
// question marks.
std::string in_quotes(std::string_view text);

}  // namespace paceline
