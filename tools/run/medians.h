// What is usual among ranks and NICs, and who stands out.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::tools {

// 0 of none. Changes the order of the values.
double median(std::vector<double>& values);

// Each over the median of those that are not 0, which take no part.
void divide_by_median(std::vector<double>& values);

// The number of the largest. There must be one.
std::uint32_t largest_of(const std::vector<double>& values);

}  // namespace paceline::tools
