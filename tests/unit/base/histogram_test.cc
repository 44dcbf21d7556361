#include "dataplane/base/numbers/histogram.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline {
namespace {

constexpr std::uint64_t kTop = std::numeric_limits<std::uint64_t>::max();

// Nearest rank in a sorted sample, the definition that quantile() promises.
std::uint64_t exact_quantile(const std::vector<std::uint64_t>& sorted, double q) {
  const double rank = std::ceil(q * static_cast<double>(sorted.size()));
  const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return sorted[index];
}

TEST_CASE("buckets tile all 64-bit values and are narrow") {
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
    const std::uint64_t low = Histogram::lowest_of(i);
    const std::uint64_t width = Histogram::width_of(i);
    REQUIRE(low == next);
    REQUIRE(Histogram::bucket_of(low) == i);
    REQUIRE(Histogram::bucket_of(low + (width - 1)) == i);
    // Twice the distance from the middle to the far end, in integers: at most 1 % of the lowest.
    if (width > 1) REQUIRE(width <= low / 50);
    next = low + width;
  }
  CHECK(next == 0);  // exactly 2^64
}

TEST_CASE("an empty histogram reports zeros") {
  const Histogram h;
  CHECK(h.empty());
  CHECK(h.min() == 0);
  CHECK(h.max() == 0);
  CHECK(h.mean() == 0.0);
  CHECK(h.quantile(0.5) == 0);
}

TEST_CASE("small values are exact") {
  Histogram h;
  for (std::uint64_t v = 0; v < 128; ++v) h.record(v);
  CHECK(h.count() == 128);
  CHECK(h.quantile(0.0) == 0);
  CHECK(h.quantile(0.25) == 31);
  CHECK(h.quantile(0.5) == 63);
  CHECK(h.quantile(0.75) == 95);
  CHECK(h.quantile(1.0) == 127);
  CHECK(h.mean() == 63.5);
}

TEST_CASE("quantiles are within one per cent of the exact ones") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U, 4U, 5U, 6U);
  INFO("seed " << seed);
  Random random(seed);
  auto h = std::make_unique<Histogram>();
  std::vector<std::uint64_t> values;
  const std::uint64_t n = 1 + random.below(20'000);
  for (std::uint64_t i = 0; i < n; ++i) {
    values.push_back(random.next() >> random.below(64));  // every magnitude alike
    h->record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double q : {0.0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    const auto exact = static_cast<double>(exact_quantile(values, q));
    INFO("quantile " << q);
    CHECK(std::abs(static_cast<double>(h->quantile(q)) - exact) <= 0.01 * exact);
  }
  CHECK(h->min() == values.front());
  CHECK(h->max() == values.back());
  CHECK(h->quantile(0.0) == values.front());
  CHECK(h->quantile(1.0) == values.back());
}

TEST_CASE("quantiles never leave the range of what was recorded") {
  Histogram low_end;
  low_end.record(1000, 10);  // the first of the eight values of its bucket
  CHECK(low_end.quantile(0.5) == 1000);
  Histogram high_end;
  high_end.record(1007, 10);  // the last of them
  CHECK(high_end.quantile(0.5) == 1007);
}

TEST_CASE("the mean is exact where 64 bits would overflow") {
  Histogram h;
  h.record(kTop, 3);
  h.record(kTop - 3, 1);
  CHECK(h.mean() == static_cast<double>(kTop));
  CHECK(h.sum() == 4.0 * static_cast<double>(kTop));
  CHECK(h.max() == kTop);
  CHECK(h.min() == kTop - 3);
}

TEST_CASE("a count of n is n records, a count of 0 none") {
  Histogram one;
  Histogram many;
  one.record(12345, 7);
  for (int i = 0; i < 7; ++i) many.record(12345);
  CHECK(one == many);
  one.record(1, 0);
  CHECK(one == many);
}

TEST_CASE("merging equals recording everything in one") {
  Random random(9);
  Histogram parts[3];
  Histogram whole;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t v = random.next() >> random.below(64);
    parts[random.below(3)].record(v);
    whole.record(v);
  }
  Histogram merged;
  for (const Histogram& part : parts) merged.merge(part);
  CHECK(merged == whole);
  merged.merge(Histogram{});
  CHECK(merged == whole);
  Histogram empty;
  empty.merge(whole);
  CHECK(empty == whole);
}

TEST_CASE("visited buckets account for every record") {
  Random random(10);
  Histogram h;
  for (int i = 0; i < 5000; ++i) h.record(random.next() >> random.below(64));
  std::uint64_t total = 0;
  std::uint64_t previous = 0;
  h.for_each_bucket([&](std::uint64_t low, std::uint64_t width, std::uint64_t count) {
    CHECK(low >= previous);
    previous = low + (width - 1);
    total += count;
  });
  CHECK(total == h.count());
  CHECK(previous >= h.max());
}

}  // namespace
}  // namespace paceline
