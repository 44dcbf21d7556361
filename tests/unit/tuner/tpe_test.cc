#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "control/tuner/tpe.h"

namespace paceline::tuner {
namespace {

// A ridge with a cliff: the best place lies hard at a limit, as it does with queue limits.
Score landscape(const std::vector<double>& point) {
  Score score;
  score.objective = 0;
  for (std::size_t d = 0; d < point.size(); ++d) {
    const double best = 0.3 + 0.1 * static_cast<double>(d % 4);
    score.objective -= (point[d] - best) * (point[d] - best);
  }
  if (point[0] > 0.32) score.excess = point[0] - 0.32;
  return score;
}

double best_of_search(std::size_t dimensions, std::uint64_t seed, std::size_t evaluations,
                      bool by_chance) {
  Tpe tpe(dimensions, seed);
  Random random(seed, 1);
  double best = -1e9;
  for (std::size_t i = 0; i < evaluations; ++i) {
    std::vector<double> point = tpe.ask();
    if (by_chance) {
      for (double& x : point) x = random.uniform();
    }
    const Score score = landscape(point);
    if (score.feasible()) best = std::max(best, score.objective);
    tpe.tell(std::move(point), score);
  }
  return best;
}

TEST_CASE("tpe: the start covers every stratum of every axis", "[tuner]") {
  TpeOptions options;
  options.initial = 16;
  Tpe tpe(3, 5, options);
  std::vector<std::vector<bool>> seen(3, std::vector<bool>(16, false));
  for (std::size_t i = 0; i < 16; ++i) {
    std::vector<double> point = tpe.ask();
    for (std::size_t d = 0; d < 3; ++d) {
      REQUIRE(point[d] >= 0);
      REQUIRE(point[d] < 1);
      seen[d][static_cast<std::size_t>(point[d] * 16)] = true;
    }
    tpe.tell(std::move(point), {});
  }
  for (const auto& axis : seen) CHECK(std::count(axis.begin(), axis.end(), true) == 16);
}

TEST_CASE("tpe: proposals stay in the cube, the same ones for the same seed", "[tuner]") {
  Tpe a(4, 9);
  Tpe b(4, 9);
  Tpe c(4, 10);
  bool differs = false;
  for (int i = 0; i < 80; ++i) {
    std::vector<double> point = a.ask();
    CHECK(point == b.ask());
    const std::vector<double> other = c.ask();
    differs = differs || other != point;
    for (const double x : point) CHECK((x >= 0 && x <= 1));
    b.tell(point, landscape(point));
    c.tell(other, landscape(other));
    a.tell(point, landscape(point));
  }
  CHECK(differs);
}

// Ten random searches against ten guided ones in six dimensions: the guided median comes nearer.
TEST_CASE("tpe: comes nearer than chance, and keeps to the limits", "[tuner]") {
  std::vector<double> guided;
  std::vector<double> chance;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    guided.push_back(best_of_search(6, seed, 150, false));
    chance.push_back(best_of_search(6, seed, 150, true));
  }
  std::sort(guided.begin(), guided.end());
  std::sort(chance.begin(), chance.end());
  CAPTURE(guided, chance);
  CHECK(-guided[5] < 0.5 * -chance[5]);
}

}  // namespace
}  // namespace paceline::tuner
