#include "tools/run/medians.h"

#include <algorithm>

namespace paceline::tools {

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void divide_by_median(std::vector<double>& values) {
  std::vector<double> some = values;
  std::erase(some, 0.0);
  const double middle = median(some);
  for (double& value : values) value = middle == 0 ? 0 : value / middle;
}

std::uint32_t largest_of(const std::vector<double>& values) {
  return static_cast<std::uint32_t>(std::max_element(values.begin(), values.end()) -
                                    values.begin());
}

}  // namespace paceline::tools
