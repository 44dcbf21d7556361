// The one histogram of the project: counters, experiments and reports all record into it, so that
// numbers from different places can be merged and compared.
//
// Log-linear: values below 128 have a bucket each; above, every power of two is divided into 64
// buckets of equal width. A quantile is the middle of its bucket, so it is off by at most 1/128
// (0.79 %) of the true value. Count, minimum, maximum and sum are exact.
//
// Fixed memory (30 KB), trivially copyable: it can live in shared memory and be sampled by copying.
// Written by one thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace paceline {

class Histogram {
 public:
  static constexpr unsigned kSubBits = 6;  // 2^6 buckets per power of two
  static constexpr std::size_t kBuckets = (64 - kSubBits) * (std::size_t{1} << kSubBits) + 64;

  // Any value; `count` times. No division, no branch on the value.
  void record(std::uint64_t value, std::uint64_t count = 1) {
    if (count == 0) return;
    buckets_[bucket_of(value)] += count;
    count_ += count;
    sum_ += Wide{value} * count;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }

  // As if everything recorded in `other` had been recorded here.
  void merge(const Histogram& other);

  std::uint64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::uint64_t min() const { return count_ == 0 ? 0 : min_; }  // 0 when empty, like the rest
  std::uint64_t max() const { return max_; }
  double sum() const { return static_cast<double>(sum_); }
  double mean() const { return count_ == 0 ? 0.0 : sum() / static_cast<double>(count_); }

  // The value of rank ceil(q * count), counted from 1 in ascending order (the "nearest rank"
  // definition); q in [0, 1]. quantile(0) is min() and quantile(1) is max(), exactly.
  std::uint64_t quantile(double q) const;

  // Calls visit(lowest value, number of values, count) for every bucket that is not empty, in
  // ascending order; the bucket's highest value is lowest + number - 1.
  template <class Visit>
  void for_each_bucket(Visit&& visit) const {
    for (std::size_t i = 0; i < kBuckets; ++i) {
      if (buckets_[i] != 0) visit(lowest_of(i), width_of(i), buckets_[i]);
    }
  }

  friend bool operator==(const Histogram&, const Histogram&) = default;

  static constexpr std::size_t bucket_of(std::uint64_t value) {
    const auto shift = static_cast<unsigned>(std::bit_width(value | kSubCount)) - (kSubBits + 1);
    return static_cast<std::size_t>((std::uint64_t{shift} << kSubBits) + (value >> shift));
  }
  static constexpr std::uint64_t lowest_of(std::size_t bucket) {
    if (bucket < 2 * kSubCount) return bucket;
    const std::size_t shift = (bucket >> kSubBits) - 1;
    return std::uint64_t{bucket - (shift << kSubBits)} << shift;
  }
  static constexpr std::uint64_t width_of(std::size_t bucket) {
    return bucket < 2 * kSubCount ? 1 : std::uint64_t{1} << ((bucket >> kSubBits) - 1);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::uint64_t kSubCount = std::uint64_t{1} << kSubBits;

  std::uint64_t count_ = 0;
  std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max_ = 0;
  Wide sum_ = 0;
  std::array<std::uint64_t, kBuckets> buckets_{};
};

static_assert(std::is_trivially_copyable_v<Histogram>);
static_assert(Histogram::bucket_of(std::numeric_limits<std::uint64_t>::max()) ==
              Histogram::kBuckets - 1);

}  // namespace paceline
