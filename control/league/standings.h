// Ranks by dominance. No weights: an entry is beaten only by one that is as good in every ranked
// measure and better in one.
#pragma once

#include <cstdint>
#include <vector>

#include "control/league/cell.h"
#include "control/league/plan/plan.h"

namespace paceline::league {

// Rank of one entry in one scenario, among the entries of its kind (Needs).
struct Place {
  // 1: undominated. 2: undominated once those of rank 1 are taken away, and so on. 0: not ranked,
  // because a run did not finish or a ranked measure is missing.
  std::uint32_t rank = 0;
  std::vector<std::uint32_t> dominated_by;  // entries
};

// Over all scenarios, among the entries of its kind.
struct Standing {
  std::uint32_t entry = 0;
  std::uint32_t undominated = 0;  // scenarios of rank 1
  std::uint32_t ranked = 0;       // scenarios with a rank
  std::uint32_t unfinished = 0;   // scenarios in which a run did not finish
  double mean_rank = Summary::kNone;
  // Geometric means over the ranked scenarios of the value over the best of its kind there: 1 is
  // the best everywhere; efficiency is at most 1, slowdown and queue at least 1.
  double efficiency = Summary::kNone;
  double slowdown = Summary::kNone;
  double queue = Summary::kNone;
};

struct Standings {
  std::vector<Place> places;   // in the order of plan.cells
  std::vector<Standing> edge;  // best first: most undominated, least mean rank, plan's order
  std::vector<Standing> switches;
};

// Whether `a` is as good as `b` in every ranked measure, within plan.margin, and better in one
// beyond it; queues below plan.queue_floor_bytes are all alike. Both cells must have all three
// measures.
bool dominates(const Cell& a, const Cell& b, const Plan& plan);

Standings standings_of(const Plan& plan, const std::vector<Cell>& cells);

}  // namespace paceline::league
