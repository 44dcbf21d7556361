// A priority queue of deadlines keyed by small dense indices (contexts, queue pairs): each index is
// in it at most once, and is moved or removed by its index. The order is strictly (time, index), so
// it never depends on the order of insertion.
//
// A tournament tree (Knuth, TAOCP vol. 3, 5.4.1) of eight-way matches: the leaves are the deadlines
// by index, each node holds the winner of its eight children, the root the next one due. A match
// reads one cache line and has no data-dependent branch, and the walk up ends at the first node
// that does not change. There is no position table to keep, as a heap with removal by name needs,
// and equal times resolve to the smaller index by the order of the leaves.
//
// One structure serves pacing (entries are reached) and timeouts (entries are pushed back before
// they are reached: mostly one store and one match). Cost depends on the indices reserved: none but
// a store for one index, two matches a change up to 64, six up to 262,144.
// tests/bench/bench_pacing.cc compares it.
//
// The object itself is small, and is all there is while one index is reserved: an engine has three
// of these on its hottest cache lines. Up to eight indices are one match on one further line.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "dataplane/base/prefetch.h"
#include "dataplane/base/units.h"

namespace paceline {

class DeadlineTree {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  DeadlineTree() = default;
  explicit DeadlineTree(std::uint32_t indices) { reserve(indices); }
  DeadlineTree(const DeadlineTree& other);
  DeadlineTree& operator=(const DeadlineTree& other);
  DeadlineTree(DeadlineTree&&) = default;
  DeadlineTree& operator=(DeadlineTree&&) = default;
  ~DeadlineTree() = default;

  // Allows the indices 0 .. indices - 1 and keeps what is scheduled; never shrinks. The only call
  // that allocates, so not for the hot path; costs time in proportion to `indices`.
  void reserve(std::uint32_t indices);
  std::uint32_t capacity() const { return capacity_; }

  bool contains(std::uint32_t index) const { return deadline_of(index) != kNever; }

  // kNever when the index is not in.
  Picos deadline_of(std::uint32_t index) const {
    assert(index < capacity_);
    return tree_ == nullptr ? first_ : leaf(index);
  }

  // Puts the index in, or moves it if it is in already. A time in the past is due at once; kNever
  // takes it out, as cancel does.
  void schedule(std::uint32_t index, Picos at) {
    assert(index < capacity_);
    if (tree_ == nullptr) {
      first_ = at;
      return;
    }
    if (popped_ != index) settle();
    leaf(index) = at;
    play(index);
  }

  // Takes the index out; nothing happens when it is not in.
  void cancel(std::uint32_t index) { schedule(index, kNever); }

  // Time of the first entry, exactly; kNever when empty.
  Picos next_deadline() const {
    if (popped_ == kNone) return first_;
    return few() ? tree_->earliest_of_few() : tree_->first_without(popped_);
  }

  // The same for callers that have popped until nothing was due: saves the check.
  Picos next_deadline_settled() const {
    assert(popped_ == kNone);
    return first_;
  }

  bool empty() const { return next_deadline() == kNever; }

  // Takes out and returns the first index whose time is not after `now`; kNone when nothing is due.
  // now must be before kNever.
  std::uint32_t pop_due(Picos now) {
    assert(now < kNever);
    settle();
    if (first_ > now) return kNone;
    if (tree_ == nullptr) {
      first_ = kNever;
      return 0;
    }
    popped_ = likely_first();
    leaf(popped_) = kNever;
    return popped_;
  }

  // --- looking ahead: changes nothing ---
  // Starts loading what the calls above will read.
  void prefetch() const {
    if (tree_ != nullptr) prefetch_line(tree_.get());
  }
  // The index with the first deadline, once all matches are played; any index if there is none.
  std::uint32_t likely_first() const {
    if (tree_ == nullptr) return 0;
    return few() ? tree_->first_of_few() : tree_->first_index();
  }

 private:
  static constexpr unsigned kFanOutBits = 3;
  static constexpr std::uint32_t kFanOut = 1U << kFanOutBits;

  // The matches over two indices and more.
  class Tree {
   public:
    explicit Tree(std::uint32_t indices);
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;

    // For at most kFanOut indices.
    Picos& few(std::uint32_t index) { return line_[index]; }
    Picos earliest_of_few() const { return {match(line_.data()).time}; }
    std::uint32_t first_of_few() const { return match(line_.data()).winner; }

    // For more.
    Picos& leaf(std::uint32_t index) { return times_[origin_ + index]; }
    Picos leaf(std::uint32_t index) const { return times_[origin_ + index]; }
    Picos first_time() const { return times_[root_]; }
    std::uint32_t first_index() const { return winners_[root_]; }

    // Plays the matches above leaf `index` again, after its time changed.
    void replay(std::uint32_t index) {
      std::uint32_t first = index & ~(kFanOut - 1);
      Entry best = match(&times_[origin_ + first]);
      best.winner += first;
      for (unsigned level = 1;; ++level) {
        index >>= kFanOutBits;
        const std::size_t node = level_begin_[level] + index;
        if (times_[node].count == best.time && winners_[node] == best.winner) return;
        times_[node] = {best.time};
        winners_[node] = best.winner;
        if (node == root_) return;
        const std::size_t group = node - (index & (kFanOut - 1));
        best = match(&times_[group]);
        best.winner = winners_[group + best.winner];
      }
    }

    // The root's value once the matches of that leaf are played; changes nothing.
    Picos first_without(std::uint32_t index) const;

   private:
    static constexpr unsigned kMaxLevels = 11;  // 8^11 > 2^32

    struct Entry {
      std::int64_t time;
      std::uint32_t winner;
    };

    // The smallest of eight adjacent times and its place among them, the first of equals. The
    // outcome of a match is a coin toss for a branch predictor, so there is no branch: minimum and
    // place are computed apart, because GCC turns a choice between two pairs into one.
    static Entry match(const Picos* t) {
      const auto choose = [](bool second, std::uint32_t a, std::uint32_t b) {
        return a ^ ((a ^ b) & (0U - std::uint32_t{second}));
      };
      const auto earliest = [choose](Entry a, Entry b) {
        return Entry{std::min(a.time, b.time), choose(b.time < a.time, a.winner, b.winner)};
      };
      const auto at = [t](std::uint32_t place) { return Entry{t[place].count, place}; };
      return earliest(earliest(earliest(at(0), at(1)), earliest(at(2), at(3))),
                      earliest(earliest(at(4), at(5)), earliest(at(6), at(7))));
    }

    alignas(64) std::array<Picos, kFanOut> line_;
    // All levels in one array, leaves first, each level filled up to whole groups with kNever;
    // origin_ places every group on a cache line of its own. winners_ runs parallel to times_ (its
    // leaves are unused).
    std::size_t origin_ = 0;
    std::size_t root_ = 0;
    std::vector<Picos> times_;
    std::vector<std::uint32_t> winners_;
    std::array<std::size_t, kMaxLevels + 1> level_begin_{};
  };

  // pop_due leaves the matches of the popped leaf unplayed: as a rule the same index is scheduled
  // again next, and one replay serves both.
  void settle() {
    if (popped_ != kNone) play(popped_);
  }

  bool few() const { return capacity_ <= kFanOut; }
  Picos& leaf(std::uint32_t index) { return few() ? tree_->few(index) : tree_->leaf(index); }
  Picos leaf(std::uint32_t index) const { return few() ? tree_->few(index) : tree_->leaf(index); }
  // The matches above a leaf that has changed.
  void play(std::uint32_t index) {
    popped_ = kNone;
    if (few()) {
      first_ = tree_->earliest_of_few();
      return;
    }
    tree_->replay(index);
    first_ = tree_->first_time();
  }

  Picos first_ = kNever;  // one index: its deadline; else the root's, unless a leaf is popped
  std::uint32_t popped_ = kNone;  // leaf whose matches are still to be played
  std::uint32_t capacity_ = 1;
  std::unique_ptr<Tree> tree_;  // none for one index
};

}  // namespace paceline
