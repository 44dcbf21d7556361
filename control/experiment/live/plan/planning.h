// How many pairs an experiment needs, from the spread of an A/A run of the same design.
#pragma once

#include <cstdint>

namespace paceline::experiment::live {

// log(1 + share): what an effect of `share` is on the scale of the analysis.
double log_effect(double share);

// Pairs with which a two-sided t test at level alpha finds a true mean difference of `effect` with
// this probability, when differences have standard deviation `sd`: the least n of which
// minimum_detectable_mean (statistics.h) is no larger, and never below `least`.
std::uint32_t pairs_needed(double effect, double sd, double alpha, double power,
                           std::uint32_t least);

// The probability that this test finds it: exact for normal differences (noncentral t).
double power_of(double effect, double sd, std::uint32_t pairs, double alpha);

}  // namespace paceline::experiment::live
