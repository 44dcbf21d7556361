#include "cc/nearest_name.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace paceline::cc {
namespace {

// Optimal string alignment distance: a letter inserted, deleted or replaced, and a swap of
// neighbours, count 1 each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names,
                              std::size_t most_edits) {
  std::string_view best;
  std::size_t best_distance = kAnyDistance;
  for (const std::string_view candidate : names) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= best_distance || distance > most_edits) continue;
    if (most_edits != kAnyDistance && distance >= candidate.size()) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

}  // namespace paceline::cc
