// The target of a request line, taken apart: path by segments, query by pairs, percent-decoded.
// RFC 9112 section 3.2 (origin-form; absolute-form is understood), RFC 3986 section 2.1.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline::daemon {

struct Target {
  std::vector<std::string> segments;  // "/v1/nics" is two, "/" one empty
  std::vector<std::pair<std::string, std::string>> query;
};

// Returns what is wrong with the target (`out` is then unusable), or an empty text. Decoded text is
// UTF-8 without control characters.
std::string read_target(std::string_view target, Target& out);

// Path or value as it is written in a target: everything but unreserved characters is encoded.
std::string percent_encoded(std::string_view text);

}  // namespace paceline::daemon
