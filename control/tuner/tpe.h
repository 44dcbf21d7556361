// A tree-structured Parzen estimator (Bergstra et al., "Algorithms for Hyper-Parameter
// Optimization", NIPS 2011) over the unit cube, with joint kernels over all dimensions as in BOHB
// (Falkner, Klein, Hutter, ICML 2018, section 4.1). After a start of points that cover each axis
// evenly, it proposes where the density of the good points is high against that of the rest. What
// is good is the caller's order, so that hard limits come first: points within the limits precede
// all others.
//
// Pure: the same seed and the same scores give the same proposals, wherever they are evaluated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "control/tuner/objective.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::tuner {

struct TpeOptions {
  std::size_t initial = 24;     // points of the start
  double good_share = 0.15;     // of the points told
  std::size_t candidates = 64;  // drawn from the good density per proposal
  double chance = 0.15;         // share of proposals that are uniform
  double widen = 3;             // good kernels are drawn from this much wider, to look around
};

class Tpe {
 public:
  Tpe(std::size_t dimensions, std::uint64_t seed, TpeOptions options = {});

  // The next point to try.
  std::vector<double> ask();
  void tell(std::vector<double> point, const Score& score);

 private:
  struct Told {
    std::vector<double> point;
    Score score;
  };
  using Widths = std::vector<double>;
  Widths widths(std::size_t begin, std::size_t end) const;
  double log_density(const std::vector<double>& x, std::size_t begin, std::size_t end,
                     const Widths& w) const;
  double drawn_near(double centre, double width);

  std::size_t dimensions_;
  Random random_;
  TpeOptions options_;
  std::vector<std::vector<std::uint32_t>> start_;  // per dimension: a permutation of the strata
  std::size_t asked_ = 0;
  std::vector<Told> told_;  // best first
};

}  // namespace paceline::tuner
