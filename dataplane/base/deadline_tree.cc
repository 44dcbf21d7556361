#include "dataplane/base/deadline_tree.h"

#include <utility>

namespace paceline {

void DeadlineTree::reserve(std::uint32_t indices) {
  if (indices <= capacity_) return;
  settle();
  std::vector<Picos> scheduled(times_.begin() + static_cast<std::ptrdiff_t>(origin_),
                               times_.begin() + static_cast<std::ptrdiff_t>(origin_ + capacity_));

  constexpr std::size_t kLine = 64;
  static_assert(kLine == kFanOut * sizeof(Picos));
  std::size_t total = 0;
  std::size_t width = indices;
  unsigned level = 0;
  for (;; ++level) {
    level_begin_[level] = total;
    if (width == 1) break;  // one index is its own winner
    const std::size_t groups = (width + kFanOut - 1) / kFanOut;
    total += groups * kFanOut;
    width = groups;
  }
  times_.assign(total + 1 + kFanOut, kNever);
  origin_ = 0;
  while (reinterpret_cast<std::uintptr_t>(&times_[origin_]) % kLine != 0) ++origin_;
  for (std::size_t& begin : level_begin_) begin += origin_;
  root_ = level_begin_[level];
  winners_.assign(times_.size(), 0);
  capacity_ = indices;

  for (std::uint32_t i = 0; i < scheduled.size(); ++i) {
    if (scheduled[i] != kNever) schedule(i, scheduled[i]);
  }
}

Picos DeadlineTree::first_after_pop() const {
  if (root_ == origin_) return times_[root_];
  std::uint32_t index = popped_;
  Picos best{match(&times_[origin_ + (index & ~(kFanOut - 1))]).time};
  for (unsigned level = 1;; ++level) {
    index >>= kFanOutBits;
    const std::size_t node = level_begin_[level] + index;
    if (node == root_) return best;
    const std::size_t group = node - (index & (kFanOut - 1));
    for (std::size_t i = group; i < group + kFanOut; ++i) {
      if (i != node) best = earlier(best, times_[i]);
    }
  }
}

}  // namespace paceline
