#include "control/experiment/live/analysis/covariates.h"

#include <algorithm>
#include <cmath>

namespace paceline::experiment::live {

namespace {

constexpr std::size_t kPairsPerCovariate = 8;

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double squares_about_mean(std::span<const double> values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double v : values) sum += (v - mean) * (v - mean);
  return sum;
}

// Solves a x = b by Gauss and Jordan; a pivot that is nothing beside its diagonal leaves x = 0.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t k = b.size();
  std::vector<double> diagonal(k);
  for (std::size_t i = 0; i < k; ++i) diagonal[i] = a[i][i];
  std::vector<bool> used(k, false);
  for (std::size_t i = 0; i < k; ++i) {
    if (!(a[i][i] > 1e-9 * diagonal[i]) || diagonal[i] <= 0) continue;
    used[i] = true;
    for (std::size_t row = 0; row < k; ++row) {
      if (row == i) continue;
      const double factor = a[row][i] / a[i][i];
      for (std::size_t column = 0; column < k; ++column) a[row][column] -= factor * a[i][column];
      b[row] -= factor * b[i];
    }
  }
  std::vector<double> x(k, 0);
  for (std::size_t i = 0; i < k; ++i) {
    if (used[i]) x[i] = b[i] / a[i][i];
  }
  return x;
}

double short_share(const BlockRecord& record) {
  double all = 0;
  for (const SizeFigures& m : record.messages) all += static_cast<double>(m.begun);
  return all > 0 ? static_cast<double>(record.messages[0].begun) / all : kUndefined;
}

}  // namespace

std::vector<std::vector<double>> covariates_of(const PairTable& table, const Contrasts& contrasts) {
  std::vector<std::vector<double>> out;
  std::size_t next = 0;
  for (const PairData& pair : table.usable) {
    if (next == contrasts.pairs.size()) break;
    if (pair.pair != contrasts.pairs[next]) continue;
    ++next;
    double offered = 0;
    double mix = 0;
    for (const auto& records : pair.clusters) {
      offered += contrast(BlockMetric::offered, records[0]->values[BlockMetric::offered],
                          records[1]->values[BlockMetric::offered]);
      mix += short_share(*records[1]) - short_share(*records[0]);
    }
    if (!std::isfinite(offered) || !std::isfinite(mix)) return {};
    const double clusters = static_cast<double>(pair.clusters.size());
    out.push_back({offered / clusters, mix / clusters});
  }
  return out;
}

Adjusted adjust(std::span<const double> values,
                const std::vector<std::vector<double>>& covariates) {
  Adjusted out;
  out.values.assign(values.begin(), values.end());
  const std::size_t n = values.size();
  if (covariates.size() != n || n == 0) return out;
  const std::size_t k = covariates[0].size();
  out.theta.assign(k, 0);
  const double before = squares_about_mean(values);
  if (n < kPairsPerCovariate * k || before == 0) return out;

  std::vector<double> means(k, 0);
  for (const auto& x : covariates) {
    for (std::size_t i = 0; i < k; ++i) means[i] += x[i] / static_cast<double>(n);
  }
  std::vector<std::vector<double>> products(k, std::vector<double>(k, 0));
  std::vector<double> with_values(k, 0);
  const double mean = mean_of(values);
  for (std::size_t p = 0; p < n; ++p) {
    for (std::size_t i = 0; i < k; ++i) {
      const double x = covariates[p][i] - means[i];
      with_values[i] += x * (values[p] - mean);
      for (std::size_t j = 0; j < k; ++j) products[i][j] += x * (covariates[p][j] - means[j]);
    }
  }
  out.theta = solve(std::move(products), std::move(with_values));
  for (std::size_t p = 0; p < n; ++p) {
    for (std::size_t i = 0; i < k; ++i) out.values[p] -= out.theta[i] * covariates[p][i];
  }
  out.explained = 1 - squares_about_mean(out.values) / before;
  // Least squares fits chance, too: residuals are too small by as many degrees of freedom as there
  // are coefficients. Spread about their mean accordingly, or intervals would be too narrow.
  const double coefficients = static_cast<double>(
      k - static_cast<std::size_t>(std::count(out.theta.begin(), out.theta.end(), 0.0)));
  const double freedom = static_cast<double>(n) - 1;
  const double wider = std::sqrt(freedom / (freedom - coefficients));
  const double centre = mean_of(out.values);
  for (double& value : out.values) value = centre + (value - centre) * wider;
  return out;
}

}  // namespace paceline::experiment::live
