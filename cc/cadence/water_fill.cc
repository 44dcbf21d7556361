#include "cc/cadence/water_fill.h"

#include <algorithm>

namespace paceline::cc::cadence {

WaterLevel water_fill(std::span<Party> parties, std::uint64_t capacity) {
  const auto before = [](const Party& a, const Party& b) {
    const std::uint64_t left = std::uint64_t{a.limit} * b.weight;
    const std::uint64_t right = std::uint64_t{b.limit} * a.weight;
    return left != right ? left < right : a.id < b.id;
  };
  if (!std::is_sorted(parties.begin(), parties.end(), before)) {
    std::sort(parties.begin(), parties.end(), before);
  }
  WaterLevel level{.left = capacity};
  for (const Party& party : parties) level.weights += party.weight;
  for (; level.bound < parties.size(); ++level.bound) {
    Party& party = parties[level.bound];
    if (party.limit * level.weights > level.left * party.weight) break;
    party.share = party.limit;
    level.left -= party.limit;
    level.weights -= party.weight;
  }
  for (Party& party : parties.subspan(level.bound)) {
    party.share = static_cast<std::uint32_t>(level.left * party.weight / level.weights);
  }
  return level;
}

}  // namespace paceline::cc::cadence
