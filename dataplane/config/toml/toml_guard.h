// Checks that toml++ 3.3 (Debian 12) does not make of its input.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "dataplane/config/toml/diagnostics.h"

namespace paceline::config {

inline constexpr std::size_t kDeepestToml = 32;  // no schema here is deeper than 5

// Refuses text that is never valid TOML but that toml++ 3.3 answers with undefined behaviour (an
// abort in a debug build) instead of an error:
//   - a table header without a name, as in [[=]] (marzer/tomlplusplus, pull request 301);
//   - a character beyond ASCII outside strings and comments: its test for white space runs into an
//     unreachable branch for U+00A1 .. U+0499.
// Also refuses a dotted key of more than kDeepestToml parts, and deeper nesting of brackets: the
// parser makes a table of each part and destroys them recursively, which overflows the stack. All
// other errors are left to the parser. False when there was an error.
bool check_toml_text(std::string_view text, const std::string& source, Diagnostics& errors);

}  // namespace paceline::config
