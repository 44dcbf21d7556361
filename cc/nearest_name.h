#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

namespace paceline::cc {

inline constexpr std::size_t kAnyDistance = std::numeric_limits<std::size_t>::max();

// The first of `names` with the smallest edit distance to `name` (insert, delete, replace, swap of
// neighbours). "" if none is within `most_edits`. Unless that is kAnyDistance, at least one letter
// of the candidate must remain.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names,
                              std::size_t most_edits = kAnyDistance);

}  // namespace paceline::cc
