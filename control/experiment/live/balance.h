// Sample-ratio mismatch: do the arms hold what the schedule gave them? Where they do not, the data
// were selected by the arms themselves, and no comparison of what is left means anything (Fabijan
// et al., KDD 2019). A check that fails stops the analysis, never the traffic.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/experiment/statistics.h"

namespace paceline::experiment::live {

inline constexpr double kMismatchLevel = 0.0005;

struct BalanceCheck {
  std::string name;  // "blocks", "discarded", "channels", "offered bytes"
  std::array<double, 2> observed{};
  std::array<double, 2> expected{};
  double p = kUndefined;  // undefined: nothing to test
  bool stops = true;      // false: reported only
  bool mismatch() const { return stops && p < kMismatchLevel; }
};

// Counts of independent things that fall to an arm with the shares of `expected` (Pearson's
// chi-square, one degree of freedom). Where a count of fewer than 5 is expected, the exact binomial
// test takes its place.
double share_test(std::array<std::uint64_t, 2> observed, std::array<double, 2> expected);

// Of `planned` things per arm so many were lost: Pearson's chi-square of the 2 x 2 table, or
// Fisher's exact test where a cell of it is expected to hold fewer than 5.
double loss_test(std::array<std::uint64_t, 2> lost, std::array<std::uint64_t, 2> planned);

// Amounts that are no counts of independent things (bytes and channels come in bursts): the
// differences of pairs say how much they vary. (sum d)^2 / sum d^2 is chi-square with one degree of
// freedom for many pairs; for few the test is conservative.
double pairs_test(std::span<const double> differences);

double chi_square_survival(double statistic, double degrees_of_freedom);

}  // namespace paceline::experiment::live
