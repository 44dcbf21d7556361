#include "dataplane/base/numbers/histogram.h"

#include <cassert>

namespace paceline {

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

std::uint64_t Histogram::quantile(double q) const {
  assert(q >= 0.0 && q <= 1.0);
  if (count_ == 0) return 0;
  const double position = q * static_cast<double>(count_);
  if (!(position > 1.0)) return min();
  if (position > static_cast<double>(count_ - 1)) return max();
  auto rank = static_cast<std::uint64_t>(position);
  if (static_cast<double>(rank) < position) ++rank;

  std::uint64_t passed = 0;
  for (std::size_t i = bucket_of(min_); i < kBuckets; ++i) {
    passed += buckets_[i];
    if (passed >= rank) {
      return std::clamp(lowest_of(i) + (width_of(i) - 1) / 2, min_, max_);
    }
  }
  return max();
}

}  // namespace paceline
