// What a rank exchanges with its replicas: gradients, and weights if they are sharded. Runs in
// parallel with computing; the collectives of a kind follow one another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tools/workload/training/rank_ops.h"
#include "tools/workload/training/stage_units.h"
#include "tools/workload/training/training_settings.h"

namespace paceline::workload {

class WeightTraffic {
 public:
  // Both must outlive this. units: of the rank, all its chunks.
  WeightTraffic(const TrainingSettings& settings, RankOps& ops, std::size_t units)
      : settings_(settings), ops_(ops), updated_(units, {RankOps::kNone, RankOps::kNone}) {}

  using Ops = std::array<std::uint32_t, 2>;  // of weights and of experts, or RankOps::kNone

  // What the first use of a unit's weights in an iteration waits for.
  const Ops& updated(std::size_t unit) const { return updated_[unit]; }

  // Gathers the weights of a unit before a use. after: op that must have ended.
  Ops gather(std::size_t unit, const StageUnit& sizes, std::uint32_t after);

  // Op `after` has computed the unit's gradients of the last micro-batch. A bucket ends with the
  // unit that fills it, with each one where weights are gathered by units, and at the latest at
  // `last`.
  void reduce(std::size_t unit, const StageUnit& sizes, std::uint32_t after, bool last);

  // All gradients of an iteration are in flight: the next iteration waits for them.
  void end_iteration();

 private:
  using Parameters = std::array<std::uint64_t, 2>;

  // Units whose gradients travel together.
  struct Bucket {
    Parameters parameters{};
    std::vector<std::size_t> units;
    std::uint32_t after = RankOps::kNone;
  };

  void close_bucket();
  Ops gather_all(const Parameters& parameters, const Ops& after);

  const TrainingSettings& settings_;
  RankOps& ops_;
  std::vector<Ops> updated_;  // by unit
  Bucket open_;
  std::vector<Bucket> closed_;                    // of the iteration
  Ops reduced_{RankOps::kNone, RankOps::kNone};   // the last ones
  Ops gathered_{RankOps::kNone, RankOps::kNone};  // the last ones
};

}  // namespace paceline::workload
