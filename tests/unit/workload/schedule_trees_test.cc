// The double tree of NCCL and the binomial trees of PAT.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/unit/workload/schedule_samples.h"
#include "tools/workload/schedules/families/double_tree.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload::schedule_trees_test {
namespace {

using namespace schedule_samples;
using Numbers = std::vector<std::uint32_t>;

Numbers tree_of(std::uint32_t n, std::uint32_t tree) {
  Numbers parents(n);
  for (std::uint32_t r = 0; r < n; ++r) parents[r] = double_tree_parent(n, tree, r);
  return parents;
}

Numbers child_counts(const Numbers& parents) {
  Numbers counts(parents.size(), 0);
  for (const std::uint32_t p : parents) {
    if (p != kNoParent) ++counts[p];
  }
  return counts;
}

// Edges from the deepest member up to the root; more than all there are for a circle.
std::uint32_t depth_of(const Numbers& parents) {
  std::uint32_t depth = 0;
  for (std::uint32_t r = 0; r < parents.size(); ++r) {
    std::uint32_t edges = 0;
    for (std::uint32_t at = r; parents[at] != kNoParent && edges <= parents.size(); ++edges)
      at = parents[at];
    depth = std::max(depth, edges);
  }
  return depth;
}

// Children in the first tree, by the rule from above: r - b/2, and r + d with the largest
// d = b/2, b/4, .. that is a member; of the root the largest power of two.
Numbers children_by_rule(std::uint32_t n, std::uint32_t r) {
  const auto largest = [n, r](std::uint32_t d) {
    while (d > 0 && r + d >= n) d /= 2;
    return d;
  };
  const std::uint32_t half = (r & (0 - r)) / 2;
  Numbers children;
  if (r == 0) return {largest(1U << 30)};
  if (half > 0) children.push_back(r - half);
  if (largest(half) > 0) children.push_back(r + largest(half));
  return children;
}

TEST_CASE("schedule trees: the double tree of 14", "[schedules]") {
  CHECK(tree_of(14, 0) == Numbers{kNoParent, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12});
  CHECK(tree_of(14, 1) == Numbers{1, 5, 3, 1, 3, 13, 7, 9, 7, 5, 11, 9, 11, kNoParent});
  CHECK(depth_of(tree_of(13, 0)) == 4);
  CHECK(depth_of(tree_of(100, 1)) == 7);
}

TEST_CASE("schedule trees: facts of double trees", "[schedules]") {
  for (std::uint32_t n = 2; n <= 200; ++n) {
    CAPTURE(n);
    const Numbers first = tree_of(n, 0);
    const Numbers second = tree_of(n, 1);
    CHECK(std::count(first.begin(), first.end(), kNoParent) == 1);
    CHECK(std::count(second.begin(), second.end(), kNoParent) == 1);
    CHECK(depth_of(first) == log2_up(n));
    CHECK(depth_of(second) == log2_up(n));
    const Numbers a = child_counts(first);
    const Numbers b = child_counts(second);
    std::uint32_t leaves_in_both = 0;
    std::uint32_t inner_in_both = 0;
    for (std::uint32_t r = 0; r < n; ++r) {
      leaves_in_both += a[r] == 0 && b[r] == 0;
      inner_in_both += a[r] > 0 && b[r] > 0;
      for (const std::uint32_t child : children_by_rule(n, r)) CHECK(first[child] == r);
      CHECK(a[r] == children_by_rule(n, r).size());
    }
    CHECK(leaves_in_both == 0);
    CHECK(inner_in_both == n % 2);
  }
}

TEST_CASE("schedule trees: bytes of the double tree", "[schedules]") {
  constexpr std::uint64_t kHalf = 500'000;
  for (std::uint32_t n = 2; n <= 200; ++n) {
    const auto sent = bytes_sent(built(CollectiveOp::all_reduce, "double_tree", {n}), 2 * kHalf);
    const Numbers first = tree_of(n, 0);
    const Numbers second = tree_of(n, 1);
    const Numbers a = child_counts(first);
    const Numbers b = child_counts(second);
    for (std::uint32_t r = 0; r < n; ++r) {
      CAPTURE(n, r);
      const std::uint64_t halves =
          a[r] + b[r] + (first[r] == kNoParent ? 0U : 1U) + (second[r] == kNoParent ? 0U : 1U);
      CHECK(sent[r] == halves * kHalf);
      CHECK(sent[r] >= 2 * kHalf);
      CHECK(sent[r] <= 4 * kHalf);
      if (n == 16) CHECK(halves == (r == 0 || r == 15 ? 2 : 4));
    }
    CHECK(std::accumulate(sent.begin(), sent.end(), std::uint64_t{0}) == 4 * (n - 1) * kHalf);
  }
}

// With several GPUs per server each rail has two trees, whose messages stay on it.
TEST_CASE("schedule trees: the double tree on servers of several GPUs", "[schedules]") {
  for (const auto& [g, h] : {std::pair{2U, 4U}, {4U, 7U}, {8U, 4U}, {8U, 1U}}) {
    CAPTURE(g, h);
    const Schedule s = built(CollectiveOp::all_reduce, "double_tree", {g * h, g});
    const std::uint64_t bytes = std::uint64_t{2} * g * 1000;
    std::vector<std::uint64_t> rails(g, 0);
    std::uint64_t all = 0;
    for (const Transfer& t : s.transfers) {
      all += transfer_bytes(s, t, bytes);
      if (t.from / g == t.to / g) continue;
      REQUIRE(t.from % g == t.to % g);
      rails[t.from % g] += transfer_bytes(s, t, bytes);
    }
    CHECK(all == 2 * (g * h - 1) * bytes);
    for (const std::uint64_t rail : rails) CHECK(rail == 2 * (h - 1) * bytes / g);
  }
}

// Blocks in the transfers of a rank, in their order.
Numbers blocks_sent(std::uint32_t n, std::uint32_t aggregation) {
  const Schedule s = built(CollectiveOp::all_gather, "pat", {n}, {.aggregation = aggregation});
  Numbers blocks;
  for (const Transfer& t : s.transfers) {
    if (t.from == n / 2) blocks.push_back(t.pieces);
  }
  return blocks;
}

TEST_CASE("schedule trees: blocks in the steps of PAT", "[schedules]") {
  CHECK(blocks_sent(13, 4) == Numbers{1, 2, 3, 3, 3});
  CHECK(blocks_sent(16, 1).size() == 15);
  CHECK(blocks_sent(16, 2).size() == 8);
  CHECK(blocks_sent(16, 4).size() == 5);
  CHECK(blocks_sent(16, 8).size() == 4);
  CHECK(blocks_sent(16, 0) == Numbers{1, 2, 4, 8});
  CHECK(blocks_sent(16, 64) == Numbers{1, 2, 4, 8});
  for (std::uint32_t log = 1; log <= 6; ++log) {
    for (std::uint32_t a = 0; a < log; ++a) {  // A = 2^a, D = 2^(log - a)
      CAPTURE(log, a);
      const Numbers blocks = blocks_sent(1U << log, 1U << a);
      CHECK(blocks.size() == a + (1U << (log - a)) - 1);
      CHECK(*std::max_element(blocks.begin(), blocks.end()) == 1U << a);
    }
  }
}

// D = 8: the distances 4 6 7 5 2 3 1 in this order. Rank 0 sends to the rank that is the lowest
// bit below it the block that is the rest above it.
TEST_CASE("schedule trees: PAT takes parents first", "[schedules]") {
  const Schedule s = built(CollectiveOp::all_gather, "pat", {8}, {.aggregation = 1});
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sends;
  for (const Transfer& t : s.transfers) {
    if (t.from == 0) sends.emplace_back(t.to, s.pieces_of(t)[0].block);
  }
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> expected{
      {4, 0}, {6, 4}, {7, 6}, {7, 4}, {6, 0}, {7, 2}, {7, 0}};
  CHECK(sends == expected);
}

}  // namespace
}  // namespace paceline::workload::schedule_trees_test
