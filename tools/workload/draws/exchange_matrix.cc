#include "tools/workload/draws/exchange_matrix.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

#include "dataplane/base/numbers/distributions.h"
#include "dataplane/base/numbers/math.h"
#include "tools/workload/draws/streams.h"

namespace paceline::workload {

namespace {

// Splits `total` by weight to whole bytes that add up exactly (largest remainder; ties to the lower
// index). Entry `self` gets nothing.
void apportion(std::uint64_t total, std::span<const double> weights, std::size_t self,
               std::span<std::uint64_t> out) {
  double sum = 0;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (j != self) sum += weights[j];
  }
  std::vector<std::pair<double, std::size_t>> remainders;
  std::uint64_t given = 0;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    out[j] = 0;
    if (j == self) continue;
    const double exact = static_cast<double>(total) * (weights[j] / sum);
    out[j] = static_cast<std::uint64_t>(exact);
    given += out[j];
    remainders.emplace_back(exact - static_cast<double>(out[j]), j);
  }
  std::sort(remainders.begin(), remainders.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (std::size_t i = 0; given < total; i = (i + 1) % remainders.size()) {
    ++out[remainders[i].second];
    ++given;
  }
  // Rounding can only overshoot when some share is a hair above a whole number: take it back there.
  for (std::size_t i = remainders.size(); given > total;) {
    i = i == 0 ? remainders.size() - 1 : i - 1;
    if (out[remainders[i].second] == 0) continue;
    --out[remainders[i].second];
    --given;
  }
}

// Draw 0 has the streams of the seed itself.
std::uint64_t seed_of_draw(const ReceiverWeights& receivers) {
  if (receivers.draw == 0) return receivers.seed;
  return mix64(mix64(receivers.seed) + receivers.draw);
}

}  // namespace

std::vector<std::uint64_t> exchange_matrix(std::span<const std::uint64_t> row_totals,
                                           const ReceiverWeights& receivers) {
  const std::size_t ranks = row_totals.size();
  assert(ranks >= 2);
  const std::uint64_t seed = seed_of_draw(receivers);
  std::vector<double> weights(ranks);
  for (std::size_t j = 0; j < ranks; ++j) {
    Random random = stream(seed, Purpose::weight, static_cast<std::uint32_t>(j));
    weights[j] = det_exp(receivers.skew * standard_normal(random));
  }
  std::vector<std::uint64_t> bytes(ranks * ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    apportion(row_totals[r], weights, r, std::span(bytes).subspan(r * ranks, ranks));
  }
  return bytes;
}

}  // namespace paceline::workload
