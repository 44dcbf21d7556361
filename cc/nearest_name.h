#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

namespace paceline::cc {

inline constexpr std::size_t kAnyDistance = std::numeric_limits<std::size_t>::max();

// The one of `names` with the smallest edit distance to `name` (insert, delete, replace, swap of
// neighbours; the first of equals). "" when all are more than `most_edits` away or, unless that is
// kAnyDistance, when no letter of the candidate would remain.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names,
                              std::size_t most_edits = kAnyDistance);

}  // namespace paceline::cc
