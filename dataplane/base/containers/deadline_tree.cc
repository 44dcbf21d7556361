#include "dataplane/base/containers/deadline_tree.h"

#include <utility>

namespace paceline {

DeadlineTree::DeadlineTree(const DeadlineTree& other) {
  reserve(other.capacity_);
  for (std::uint32_t i = 0; i < capacity_; ++i) {
    if (other.contains(i)) schedule(i, other.deadline_of(i));
  }
}

DeadlineTree& DeadlineTree::operator=(const DeadlineTree& other) {
  if (this != &other) *this = DeadlineTree(other);
  return *this;
}

void DeadlineTree::reserve(std::uint32_t indices) {
  if (indices <= capacity_) return;
  settle();
  auto larger = std::make_unique<Tree>(indices);
  for (std::uint32_t i = 0; i < capacity_; ++i) {
    const Picos at = deadline_of(i);
    if (at == kNever) continue;
    if (indices <= kFanOut) {
      larger->few(i) = at;
    } else {
      larger->leaf(i) = at;
      larger->replay(i);
    }
  }
  tree_ = std::move(larger);
  capacity_ = indices;
  first_ = few() ? tree_->earliest_of_few() : tree_->first_time();
}

DeadlineTree::Tree::Tree(std::uint32_t indices) {
  constexpr std::size_t kLine = 64;
  static_assert(kLine == kFanOut * sizeof(Picos));
  line_.fill(kNever);
  if (indices <= kFanOut) return;
  std::size_t total = 0;
  std::size_t width = indices;
  unsigned level = 0;
  for (;; ++level) {
    level_begin_[level] = total;
    if (width == 1) break;
    const std::size_t groups = (width + kFanOut - 1) / kFanOut;
    total += groups * kFanOut;
    width = groups;
  }
  times_.assign(total + 1 + kFanOut, kNever);
  while (reinterpret_cast<std::uintptr_t>(&times_[origin_]) % kLine != 0) ++origin_;
  for (std::size_t& begin : level_begin_) begin += origin_;
  root_ = level_begin_[level];
  winners_.assign(times_.size(), 0);
}

Picos DeadlineTree::Tree::first_without(std::uint32_t index) const {
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
