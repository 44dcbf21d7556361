// Checks that toml++ 3.3 (Debian 12) does not make of its input.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "dataplane/config/toml/diagnostics.h"

namespace paceline::config {

inline constexpr std::size_t kDeepestToml = 32;  // no schema here is deeper than 5

// Refuses what no TOML document holds and toml++ 3.3 answers with undefined behaviour (an abort in
// a debug build) instead of an error:
//   - a table header without a name, as in [[=]] (marzer/tomlplusplus, pull request 301);
//   - a character beyond ASCII outside strings and comments: its test for white space runs into an
//     unreachable branch for U+00A1 .. U+0499.
// Refuses as well a dotted key of more than kDeepestToml parts, and more brackets one in another:
// the parser makes a table of each part and destroys them one within the other, which overflows the
// stack.
// Anything else wrong is left to the parser. False when there was an error.
bool check_toml_text(std::string_view text, const std::string& source, Diagnostics& errors);

}  // namespace paceline::config
