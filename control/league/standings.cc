#include "control/league/standings.h"

#include <algorithm>
#include <cmath>

#include "control/experiment/text/number_text.h"
#include "dataplane/base/numbers/math.h"

namespace paceline::league {

namespace {

bool rankable(const Cell& cell) {
  return cell.finished() && std::none_of(kRanked.begin(), kRanked.end(),
                                         [&](Measure m) { return std::isnan(cell[m].mean); });
}

// How many times better `a` is than `b`: above 1 if `a` is better, for measures of either
// direction.
double advantage(const Plan& plan, const Cell& a, const Cell& b, Measure measure) {
  const double least = measure == Measure::queue_max_bytes
                           ? std::max(1.0, static_cast<double>(plan.queue_floor_bytes))
                           : 1e-9;
  const double x = std::max(a[measure].mean, least);
  const double y = std::max(b[measure].mean, least);
  return spec_of(measure).better == experiment::Better::higher ? x / y : y / x;
}

// Ranks `entries` in one scenario: 1 for the undominated, 2 for those undominated in the rest, ...
void rank_scenario(const Plan& plan, const std::vector<Cell>& cells, std::size_t scenario,
                   const std::vector<std::uint32_t>& entries, std::vector<Place>& places) {
  const auto cell = [&](std::uint32_t e) -> const Cell& { return cells[plan.cell(scenario, e)]; };
  std::vector<std::uint32_t> left;
  for (const std::uint32_t e : entries) {
    if (!rankable(cell(e))) continue;
    left.push_back(e);
    for (const std::uint32_t other : entries) {
      if (other != e && rankable(cell(other)) && dominates(cell(other), cell(e), plan)) {
        places[plan.cell(scenario, e)].dominated_by.push_back(other);
      }
    }
  }
  for (std::uint32_t rank = 1; !left.empty(); ++rank) {
    const auto beaten = [&](std::uint32_t e) {
      const auto& by = places[plan.cell(scenario, e)].dominated_by;
      return std::any_of(by.begin(), by.end(), [&](std::uint32_t other) {
        return std::find(left.begin(), left.end(), other) != left.end();
      });
    };
    std::vector<std::uint32_t> front;
    for (const std::uint32_t e : left) {
      if (!beaten(e)) front.push_back(e);
    }
    // Because of the margin, entries can dominate one another in a circle; these share a rank.
    if (front.empty()) front = left;
    for (const std::uint32_t e : front) places[plan.cell(scenario, e)].rank = rank;
    std::erase_if(left, [&](std::uint32_t e) {
      return std::find(front.begin(), front.end(), e) != front.end();
    });
  }
}

// Geometric mean, over the scenarios that rank the entry, of its value divided by its kind's best.
double against_best(const Plan& plan, const std::vector<Cell>& cells,
                    const std::vector<Place>& places, const std::vector<std::uint32_t>& kind,
                    std::uint32_t entry, Measure measure) {
  double sum = 0;
  double n = 0;
  for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
    if (places[plan.cell(s, entry)].rank == 0) continue;
    const Cell& own = cells[plan.cell(s, entry)];
    double best = 1;
    for (const std::uint32_t e : kind) {
      if (places[plan.cell(s, e)].rank == 0) continue;
      best = std::max(best, advantage(plan, cells[plan.cell(s, e)], own, measure));
    }
    sum += det_log(best);
    n += 1;
  }
  if (n == 0) return Summary::kNone;
  const double behind = det_exp(sum / n);
  return spec_of(measure).better == experiment::Better::higher ? 1 / behind : behind;
}

std::vector<Standing> table_of(const Plan& plan, const std::vector<Cell>& cells,
                               const std::vector<Place>& places,
                               const std::vector<std::uint32_t>& kind) {
  std::vector<Standing> out;
  for (const std::uint32_t e : kind) {
    Standing standing;
    standing.entry = e;
    double ranks = 0;
    for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
      const std::uint32_t rank = places[plan.cell(s, e)].rank;
      ranks += rank;
      standing.ranked += rank != 0 ? 1 : 0;
      standing.undominated += rank == 1 ? 1 : 0;
      standing.unfinished += cells[plan.cell(s, e)].finished() ? 0 : 1;
    }
    if (standing.ranked != 0) standing.mean_rank = ranks / standing.ranked;
    const auto ratio = [&](Measure measure) {
      return experiment::rounded(against_best(plan, cells, places, kind, e, measure),
                                 experiment::kFigureDigits);
    };
    standing.efficiency = ratio(Measure::efficiency);
    standing.slowdown = ratio(Measure::slowdown_p99);
    standing.queue = ratio(Measure::queue_max_bytes);
    out.push_back(standing);
  }
  std::stable_sort(out.begin(), out.end(), [](const Standing& a, const Standing& b) {
    if (a.undominated != b.undominated) return a.undominated > b.undominated;
    const bool known_a = a.ranked != 0;
    const bool known_b = b.ranked != 0;
    return known_a != known_b ? known_a : known_a && a.mean_rank < b.mean_rank;
  });
  return out;
}

}  // namespace

bool dominates(const Cell& a, const Cell& b, const Plan& plan) {
  bool better = false;
  for (const Measure measure : kRanked) {
    const double by = advantage(plan, a, b, measure);
    if (by < 1 - plan.margin) return false;
    better = better || by > 1 + plan.margin;
  }
  return better;
}

Standings standings_of(const Plan& plan, const std::vector<Cell>& cells) {
  Standings out;
  out.places.resize(cells.size());
  for (const Needs needs : {Needs::edge, Needs::switches}) {
    std::vector<std::uint32_t> kind;
    for (std::uint32_t e = 0; e < plan.entries.size(); ++e) {
      if (plan.entries[e].needs == needs) kind.push_back(e);
    }
    for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
      rank_scenario(plan, cells, s, kind, out.places);
    }
    (needs == Needs::edge ? out.edge : out.switches) = table_of(plan, cells, out.places, kind);
  }
  return out;
}

}  // namespace paceline::league
