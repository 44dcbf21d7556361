#include "control/diagnosis/robust.h"

#include <algorithm>
#include <cmath>

namespace paceline::diagnosis {

double median(std::vector<double>& values) { return quantile(values, 0.5); }

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const auto place = static_cast<std::size_t>(q * static_cast<double>(values.size()));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::min(place, values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double weighted_median(std::vector<Weighted>& values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end(),
            [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  double all = 0;
  for (const Weighted& one : values) all += one.weight;
  double sum = 0;
  for (const Weighted& one : values) {
    sum += one.weight;
    if (2 * sum > all) return one.value;
  }
  return values.back().value;
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

double Usual::score(double value, double least) const {
  return (value - middle) / std::max(spread, least);
}

Usual usual_of(std::vector<double> values) {
  constexpr double kOfNormal = 1.4826;
  Usual out;
  out.middle = median(values);
  for (double& value : values) value = std::abs(value - out.middle);
  out.spread = kOfNormal * median(values);
  return out;
}

}  // namespace paceline::diagnosis
