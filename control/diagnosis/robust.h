// Robust statistics over ranks, NICs and queue pairs: medians, which a few outliers do not move.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::diagnosis {

// 0 without values. Changes their order.
double median(std::vector<double>& values);
// The value below which a share `q`, 0..1, of the values lies; 0 without values. Changes their
// order.
double quantile(std::vector<double>& values, double q);

struct Weighted {
  double value = 0;
  double weight = 1;
};
// The value at which half of the weight is reached; 0 without values. Sorts them.
double weighted_median(std::vector<Weighted>& values);

// Divides the values by the median of those that are not 0. Zeroes stay.
void divide_by_median(std::vector<double>& values);

// The index of the largest value. `values` must not be empty.
std::uint32_t largest_of(const std::vector<double>& values);

// The median of some values, and their spread: 1.4826 times the median distance from it, which for
// a normal distribution is the standard deviation.
struct Usual {
  double middle = 0;
  double spread = 0;
  // How many spreads `value` is above the middle. A spread below `least` counts as `least`.
  double score(double value, double least) const;
};
Usual usual_of(std::vector<double> values);

}  // namespace paceline::diagnosis
