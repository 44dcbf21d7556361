// The part of a model that a rank has, and the time to compute it.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"
#include "tools/workload/training/training_settings.h"

namespace paceline::workload {

// Layers that follow one another, or what is before the first or behind the last layer.
struct StageUnit {
  std::uint32_t layers = 0;         // 0: before or behind them
  std::uint32_t expert_layers = 0;  // of these
  std::uint32_t first_layer = 0;    // its place in the model
  std::uint64_t parameters = 0;     // of the rank, without experts
  std::uint64_t expert_parameters = 0;
  // Forward; backward takes twice as long.
  Picos projections{0};  // attention without scores
  Picos scores{0};
  Picos feed_forward{0};  // or output
  Picos experts{0};
};

// A count is divided evenly among places: how much is before place `place`, rounded down.
constexpr std::uint64_t count_before(std::uint64_t count, std::uint64_t places,
                                     std::uint64_t place) {
  return place * (count / places) + place * (count % places) / places;
}
// Part `part` of `parts` of a count: the parts differ by at most one and make the whole.
constexpr std::uint64_t part_of_count(std::uint64_t count, std::uint64_t parts,
                                      std::uint64_t part) {
  return count_before(count, parts, part + 1) - count_before(count, parts, part);
}

// Places of a rank among the tensor-parallel ranks and among those that divide the experts.
struct RankShare {
  std::uint32_t tensor = 0;
  std::uint32_t expert = 0;
};

// The units of a part of the model, of pipeline * chunks parts, in the order of a forward pass.
std::vector<StageUnit> stage_units(const TrainingSettings& settings, const RankShare& share,
                                   std::uint32_t part);

}  // namespace paceline::workload
