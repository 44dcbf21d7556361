// Intervals that may be looked at after every pair, and still cover the truth at all looks
// together.
//
// The normal-mixture confidence sequence for a mean with estimated variance (Robbins 1970; Howard,
// Ramdas, McAuliffe and Sekhon, Annals of Statistics 49, 2021, proposition 5; asymptotic with an
// estimated standard deviation: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Annals of
// Statistics 52, 2024, theorem 2.2). After n values of mean m and standard deviation s it is
//
//   m +- s sqrt( 2 (n r^2 + 1) / (n^2 r^2) ln( sqrt(n r^2 + 1) / alpha ) )
//
// where r^2 = (-2 ln alpha + ln(-2 ln alpha + 1)) / n* makes it narrowest around n* values. It is
// asymptotic: with few values s is too small too often, so no experiment stops before kLeastPairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "control/experiment/analysis/statistics.h"

namespace paceline::experiment::live {

// Pairs before which nothing is decided, and pairs for which the sequence is made narrowest.
inline constexpr std::uint32_t kLeastPairs = 12;
inline constexpr double kTunedPairs = 30;

// Half of the width for n >= 1 values of standard deviation `sd`; alpha in (0, 1).
double sequence_reach(std::uint64_t n, double sd, double alpha, double tuned_for = kTunedPairs);

struct SequencePoint {
  std::uint32_t n = 0;
  double mean = kUndefined;
  double sd = kUndefined;
  Interval interval;  // two-sided at alpha
};

// After the first n values: for one n, or for all n (a chart).
SequencePoint sequence_at(std::span<const double> values, double alpha,
                          double tuned_for = kTunedPairs);
std::vector<SequencePoint> sequence_of(std::span<const double> values, double alpha,
                                       double tuned_for = kTunedPairs);

// A bound that is crossed from outside with probability `alpha` at any look: the true mean is below
// `high`, or above `low`. Each is the end of the two-sided sequence at 2 alpha.
Interval one_sided_bounds(std::span<const double> values, double alpha,
                          double tuned_for = kTunedPairs);

}  // namespace paceline::experiment::live
