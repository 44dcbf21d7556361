// What is usual among ranks, NICs and pairs, and who stands out. Medians, so that a few who are far
// away do not move what counts as usual.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::diagnosis {

// 0 of none. Changes the order of the values.
double median(std::vector<double>& values);
// The value below which a share `q` of 0..1 lies; 0 of none. Changes the order of the values.
double quantile(std::vector<double>& values, double q);

struct Weighted {
  double value = 0;
  double weight = 1;
};
// The value at which half of the weight is reached; 0 of none. Sorts the values.
double weighted_median(std::vector<Weighted>& values);

// Each over the median of those that are not 0, which take no part.
void divide_by_median(std::vector<double>& values);

// The number of the largest. There must be one.
std::uint32_t largest_of(const std::vector<double>& values);

// The middle of some values and how far they usually are from it: 1.4826 times the median distance,
// which is the standard deviation where values are normal.
struct Usual {
  double middle = 0;
  double spread = 0;
  // How many spreads a value is above the middle; no spread counts as less than `least`.
  double score(double value, double least) const;
};
Usual usual_of(std::vector<double> values);

}  // namespace paceline::diagnosis
