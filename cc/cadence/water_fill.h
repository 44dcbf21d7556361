// Max-min shares of a capacity among parties that each have a limit and a weight. Each gets a
// common level times its weight, or its limit if that is less, in whole units. The remainder, less
// than a unit a party, is not given out: equal parties get exactly equal shares, and senders that
// take turns keep doing so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline::cc::cadence {

struct Party {
  std::uint32_t id = 0;  // no two have the same
  std::uint32_t limit = 0;
  std::uint32_t weight = 1;  // 1 to 255
  std::uint32_t share = 0;
};

// The level is left / weights. The parties from `bound` on have limits above it.
struct WaterLevel {
  std::size_t bound = 0;
  std::uint64_t left = 0;     // capacity minus the limits below the level
  std::uint64_t weights = 0;  // of those from `bound` on
};

// Sets the shares. Sorts by limit per weight, then by id, so that the result does not depend on the
// order given. Takes linear time if the parties are already sorted.
WaterLevel water_fill(std::span<Party> parties, std::uint64_t capacity);

}  // namespace paceline::cc::cadence
