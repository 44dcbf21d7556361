// Lists in options, queries and tables of text: "a,b,c".
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace paceline {

// The parts of `list` between its commas, empty ones included: one part more than there are commas.
// They point into `list`.
inline std::vector<std::string_view> comma_list(std::string_view list) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

}  // namespace paceline
