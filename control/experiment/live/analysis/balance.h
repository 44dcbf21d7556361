// Sample-ratio mismatch: did the arms get what the schedule gave them? If not, the arms themselves
// selected the data, and no comparison of the rest means anything (Fabijan et al., KDD 2019). A
// failed check stops the analysis, never the traffic.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/experiment/analysis/statistics.h"

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

// Tests whether counts of independent things fall to the arms in the proportion of `expected`
// (Pearson's chi-square, one degree of freedom; the exact binomial test if an expected count is
// below 5).
double share_test(std::array<std::uint64_t, 2> observed, std::array<double, 2> expected);

// Tests whether the arms lost equal shares of their `planned` things: Pearson's chi-square of the
// 2 x 2 table, or Fisher's exact test if an expected cell is below 5.
double loss_test(std::array<std::uint64_t, 2> lost, std::array<std::uint64_t, 2> planned);

// For amounts that are not counts of independent things (bytes and channels come in bursts): the
// differences of pairs tell how much they vary. (sum d)^2 / sum d^2 is chi-square with one degree
// of freedom for many pairs; for few pairs the test is conservative.
double pairs_test(std::span<const double> differences);

double chi_square_survival(double statistic, double degrees_of_freedom);

}  // namespace paceline::experiment::live
