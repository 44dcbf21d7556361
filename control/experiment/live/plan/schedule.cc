#include "control/experiment/live/plan/schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace paceline::experiment::live {

namespace {

template <class T>
void shuffle(std::vector<T>& items, Random& random) {  // Fisher and Yates
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<std::size_t>(random.below(i))]);
  }
}

// The order of each pair: half of each kind in a stratum; a coin decides the odd one.
std::vector<std::uint8_t> draw_orders(std::uint32_t pairs, std::uint32_t stratum, Random& random) {
  std::vector<std::uint8_t> orders;
  orders.reserve(pairs);
  const std::uint32_t size = std::max<std::uint32_t>(1, stratum);
  for (std::uint32_t begin = 0; begin < pairs; begin += size) {
    const std::uint32_t n = std::min(size, pairs - begin);
    std::vector<std::uint8_t> part(n);
    for (std::uint32_t i = 0; i < n / 2 * 2; ++i) part[i] = i & 1;
    if (n % 2 != 0) part[n - 1] = static_cast<std::uint8_t>(random.below(2));
    shuffle(part, random);
    orders.insert(orders.end(), part.begin(), part.end());
  }
  return orders;
}

// Half of the clusters; for an odd number, a coin decides which half is larger. The first cluster
// is always in it, so that the order of the pair is that of cluster 0.
std::vector<std::uint8_t> draw_half(std::uint32_t clusters, Random& random) {
  std::vector<std::uint32_t> others(clusters - 1);
  std::iota(others.begin(), others.end(), 1U);
  shuffle(others, random);
  std::uint32_t size = clusters / 2;
  if (clusters % 2 != 0) size += static_cast<std::uint32_t>(random.below(2));
  std::vector<std::uint8_t> in(clusters, 0);
  in[0] = 1;
  for (std::uint32_t i = 0; i + 1 < size; ++i) in[others[i]] = 1;
  return in;
}

Assignment draw_pairs(const Mechanism& m, Random& random) {
  const std::uint32_t pairs = m.blocks / 2;
  const std::vector<std::uint8_t> orders = draw_orders(pairs, m.stratum_pairs, random);
  Assignment arms(std::size_t{m.blocks} * m.clusters);
  for (std::uint32_t p = 0; p < pairs; ++p) {
    std::vector<std::uint8_t> first(m.clusters, 1);
    if (!m.whole(p)) first = draw_half(m.clusters, random);
    for (std::uint32_t c = 0; c < m.clusters; ++c) {
      const std::uint8_t arm = orders[p] != 0 ? first[c] : static_cast<std::uint8_t>(1 - first[c]);
      arms[std::size_t{2 * p} * m.clusters + c] = arm;
      arms[std::size_t{2 * p + 1} * m.clusters + c] = static_cast<std::uint8_t>(1 - arm);
    }
  }
  return arms;
}

}  // namespace

std::vector<std::uint32_t> Mechanism::points() const {
  std::vector<std::uint32_t> out{0};
  if (carryover == 0) return out;
  const std::uint32_t n = blocks / carryover;
  for (std::uint32_t k = 2; k + 2 <= n; ++k) out.push_back(k * carryover);
  return out;
}

Mechanism mechanism_of(const Plan& plan) {
  Mechanism m;
  m.blocks = 2 * plan.pairs_max;
  m.clusters = static_cast<std::uint32_t>(plan.clusters.size());
  m.carryover = plan.carryover_blocks;
  m.whole_every = plan.design == Design::switchback ? 1 : plan.whole_every;
  const std::int64_t fits = plan.block.count > 0 ? plan.stratum.count / (2 * plan.block.count) : 0;
  m.stratum_pairs = static_cast<std::uint32_t>(std::clamp<std::int64_t>(fits, 1, plan.pairs_max));
  return m;
}

Assignment draw_assignment(const Mechanism& mechanism, Random& random) {
  if (mechanism.carryover == 0) return draw_pairs(mechanism, random);
  Assignment arms(mechanism.blocks);
  const std::vector<std::uint32_t> points = mechanism.points();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::uint32_t end = i + 1 < points.size() ? points[i + 1] : mechanism.blocks;
    const std::uint8_t arm = static_cast<std::uint8_t>(random.below(2));
    std::fill(arms.begin() + points[i], arms.begin() + end, arm);
  }
  return arms;
}

}  // namespace paceline::experiment::live
