// Ranks by dominance, on figures made by hand.

#include <catch2/catch.hpp>
#include <cmath>

#include "control/league/standings.h"

namespace paceline::league {
namespace {

Cell cell(double efficiency, double slowdown, double queue) {
  Cell out;
  out.measures[index_of(Measure::efficiency)].mean = efficiency;
  out.measures[index_of(Measure::slowdown_p99)].mean = slowdown;
  out.measures[index_of(Measure::queue_max_bytes)].mean = queue;
  return out;
}

Plan plan_of(std::vector<Needs> needs, std::size_t scenarios = 1) {
  Plan plan;
  for (const Needs n : needs) {
    Entry entry;
    entry.needs = n;
    plan.entries.push_back(entry);
  }
  plan.scenarios.resize(scenarios);
  plan.cells.resize(scenarios * needs.size());
  return plan;
}

constexpr auto kEdge = Needs::edge;
constexpr auto kSwitch = Needs::switches;

TEST_CASE("league standings: as good in all and better in one, beyond the margin") {
  const Cell base = cell(0.9, 10, 1e6);
  Plan plan;
  plan.margin = 0.02;
  plan.queue_floor_bytes = 50'000;
  Plan strict = plan;
  strict.margin = 0;
  CHECK(dominates(cell(0.9, 9, 1e6), base, plan));
  CHECK(dominates(cell(0.95, 9, 1e5), base, plan));
  CHECK_FALSE(dominates(cell(0.9, 9.9, 1e6), base, plan));  // within the margin: equal
  CHECK(dominates(cell(0.9, 9.9, 1e6), base, strict));
  CHECK(dominates(cell(0.89, 5, 1e5), base, plan));  // 1.1 % less efficient counts as equal
  CHECK_FALSE(dominates(cell(0.8, 1, 1), base, plan));
  CHECK_FALSE(dominates(base, base, strict));
  // A packet more or less in a short queue is nobody's merit.
  CHECK_FALSE(dominates(cell(0.9, 10, 4e3), cell(0.9, 10, 4.5e4), plan));
  CHECK(dominates(cell(0.9, 10, 4e3), cell(0.9, 10, 6e4), plan));
}

TEST_CASE("league standings: ranks are fronts, and name who is in front") {
  const Plan plan = plan_of({kEdge, kEdge, kEdge, kEdge});
  const std::vector<Cell> cells = {
      cell(0.95, 10, 1e6),  // undominated: the most efficient
      cell(0.90, 5, 1e5),   // undominated
      cell(0.85, 6, 2e5),   // behind 1
      cell(0.80, 20, 3e6),  // behind all
  };
  const Standings standings = standings_of(plan, cells);
  CHECK(standings.places[0].rank == 1);
  CHECK(standings.places[1].rank == 1);
  CHECK(standings.places[2].rank == 2);
  CHECK(standings.places[2].dominated_by == std::vector<std::uint32_t>{1});
  CHECK(standings.places[3].rank == 3);
  CHECK(standings.places[3].dominated_by == std::vector<std::uint32_t>{0, 1, 2});
}

TEST_CASE("league standings: entries that need switches are ranked apart") {
  const Plan plan = plan_of({kEdge, kSwitch, kEdge});
  const std::vector<Cell> cells = {cell(0.9, 5, 1e5), cell(0.99, 1, 1e4), cell(0.8, 6, 1e6)};
  const Standings standings = standings_of(plan, cells);
  CHECK(standings.places[0].rank == 1);
  CHECK(standings.places[1].rank == 1);
  CHECK(standings.places[2].rank == 2);
  CHECK(standings.places[2].dominated_by == std::vector<std::uint32_t>{0});
  REQUIRE(standings.edge.size() == 2);
  REQUIRE(standings.switches.size() == 1);
  CHECK(standings.edge[0].entry == 0);
}

TEST_CASE("league standings: what did not finish has no rank, and beats nobody") {
  const Plan plan = plan_of({kEdge, kEdge});
  std::vector<Cell> cells = {cell(0.99, 1, 1), cell(0.8, 6, 1e6)};
  cells[0].status = experiment::RunStatus::unfinished;
  const Standings standings = standings_of(plan, cells);
  CHECK(standings.places[0].rank == 0);
  CHECK(standings.places[1].rank == 1);
  CHECK(standings.edge[0].entry == 1);
  CHECK(standings.edge[1].unfinished == 1);
  CHECK(std::isnan(standings.edge[1].mean_rank));
}

TEST_CASE("league standings: the table sorts by scenarios won and states ratios to the best") {
  const Plan plan = plan_of({kEdge, kEdge}, 2);
  const std::vector<Cell> cells = {
      cell(0.9, 4, 1e6), cell(0.9, 2, 1e5),  // the second dominates
      cell(0.8, 8, 1e6), cell(0.9, 2, 4e6),  // neither does
  };
  const Standings standings = standings_of(plan, cells);
  REQUIRE(standings.edge.size() == 2);
  CHECK(standings.edge[0].entry == 1);
  CHECK(standings.edge[0].undominated == 2);
  CHECK(standings.edge[1].undominated == 1);
  CHECK(standings.edge[1].mean_rank == Approx(1.5));
  CHECK(standings.edge[0].slowdown == Approx(1));
  CHECK(standings.edge[1].slowdown == Approx(std::sqrt(2.0 * 4.0)));
  CHECK(standings.edge[0].queue == Approx(2));  // 1 and 4
  CHECK(standings.edge[1].efficiency == Approx(std::sqrt(0.8 / 0.9)).epsilon(1e-5));
}

TEST_CASE("league standings: a circle of dominance within the margin shares a rank") {
  // Each is better than the next in one measure by more than the margin, worse in the others by
  // less.
  const Plan plan = [] {
    Plan p = plan_of({kEdge, kEdge, kEdge});
    p.margin = 0.10;
    return p;
  }();
  const std::vector<Cell> cells = {cell(1.00, 2 / 1.09, 2e6 / 1.18),
                                   cell(1.18, 2 / 1.00, 2e6 / 1.09),
                                   cell(1.09, 2 / 1.18, 2e6 / 1.00)};
  CHECK(dominates(cells[1], cells[0], plan));
  CHECK(dominates(cells[2], cells[1], plan));
  CHECK(dominates(cells[0], cells[2], plan));
  const Standings standings = standings_of(plan, cells);
  for (const Place& place : standings.places) CHECK(place.rank == 1);
}

}  // namespace
}  // namespace paceline::league
