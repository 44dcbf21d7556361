// Max-min shares of a capacity among parties that each have a limit and a weight. Each gets a
// common level times its weight, or its limit if that is less, in whole units. The remainder, less
// than a unit a party, is not given out, so that equal parties get exactly equal shares: who takes
// turns goes on taking turns.
//
// Networks and schedulers serve higher traffic classes first, so these share first. The next class
// shares what they leave; a 64th of the capacity is kept for each class that has a party.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline::cc::cadence {

struct Party {
  std::uint32_t id = 0;  // no two have the same
  std::uint32_t limit = 0;
  std::uint32_t share = 0;
  std::uint8_t weight = 1;  // at least 1
  std::uint8_t traffic_class = 0;
};

// The parties from `bound` on have more than the level, which is left / weights.
struct WaterLevel {
  std::size_t bound = 0;
  std::uint64_t left = 0;     // capacity beside the limits below the level
  std::uint64_t weights = 0;  // of those from `bound` on
};

// Sorts by limit per weight, then by id: the result does not depend on the order before. Sets the
// shares. Linear where the order holds already, which it does among equals.
WaterLevel water_fill(std::span<Party> parties, std::uint64_t capacity);

// Orders the parties by class. True: there are several.
bool sort_classes(std::span<Party> parties);

// Those at the front that are of one class.
inline std::span<Party> first_class(std::span<Party> parties) {
  const auto end = std::ranges::find_if(parties, [&](const Party& other) {
    return other.traffic_class != parties.front().traffic_class;
  });
  return parties.first(static_cast<std::size_t>(end - parties.begin()));
}

// Calls share(parties of a class, capacity for them), which returns how much of it they use, class
// by class. Leaves the parties in the order of classes.
template <typename Share>
void share_by_class(std::span<Party> parties, std::uint64_t capacity, Share&& share) {
  if (!sort_classes(parties)) [[likely]] {
    share(parties, capacity);
    return;
  }
  const std::uint64_t least = capacity / 64;
  std::uint64_t kept = 0;  // for the classes below
  for (std::size_t i = 1; i < parties.size(); ++i) {
    if (parties[i].traffic_class != parties[i - 1].traffic_class) kept += least;
  }
  while (true) {
    const std::span<Party> same = first_class(parties);
    capacity -= share(same, capacity - kept);
    parties = parties.subspan(same.size());
    if (parties.empty()) return;
    kept -= least;
  }
}

}  // namespace paceline::cc::cadence
