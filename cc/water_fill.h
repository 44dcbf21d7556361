// Max-min shares: of a capacity among slots that each have a limit and a weight. Everybody gets the
// level times its weight, or its limit if that is less; what whole units leave over goes, one
// each, to the last slots in the order.
//
// The order is by limit per weight, then by index: total, so the way there does not matter.
//
// Cost: linear (a radix sort of the limits), nothing to sort where they come in order; no
// allocation after reserve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline::cc {

class WaterFill {
 public:
  static constexpr std::size_t kMaxSlots = 1 << 14;

  void reserve(std::size_t slots);
  // A slot of any type with `limit` and `weight`, 1 to 255. At most kMaxSlots.
  template <class Slot>
  void load(const std::vector<Slot>& slots) {
    keys_.resize(slots.size());
    weights_.resize(slots.size());
    std::uint64_t* const keys = keys_.data();
    std::uint8_t* const weights = weights_.data();
    // Sums in locals: what is written through the pointers might alias members.
    std::uint64_t bits = 0;
    std::uint64_t sum = 0;
    std::uint32_t last = 0;
    std::uint32_t differ = 0;
    bool sorted = true;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::uint32_t limit = slots[i].limit;
      const std::uint8_t weight = slots[i].weight;
      keys[i] = std::uint64_t{limit} << kIndexBits | i;
      weights[i] = weight;
      sorted &= limit >= last;
      last = limit;
      bits |= limit;
      sum += weight;
      differ |= static_cast<std::uint32_t>(weight ^ slots[0].weight);
    }
    limit_bits_ = bits;
    weight_sum_ = sum;
    sorted_ = sorted;
    mixed_ = differ != 0;
  }
  void fill(std::uint64_t capacity);

  // After fill, places 0 to size() - 1 of the order:
  std::size_t size() const { return keys_.size(); }
  std::size_t slot(std::size_t place) const { return keys_[place] & (kMaxSlots - 1); }
  std::uint32_t share(std::size_t place) const { return shares_[place]; }

 private:
  static constexpr unsigned kIndexBits = 14;
  static_assert(kMaxSlots == std::size_t{1} << kIndexBits);

  void fill_weighted(std::uint64_t capacity);
  void sort();
  void radix_sort();

  // Limit (per weight, in 2^-16, where weights differ) and index, then sorted by both.
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint64_t> scratch_;
  std::vector<std::uint8_t> weights_;  // by index
  std::vector<std::uint32_t> shares_;  // by place
  std::uint64_t limit_bits_ = 0;       // all limits or'ed: how many digits there are
  std::uint64_t weight_sum_ = 0;
  bool mixed_ = false;  // weights differ
  bool sorted_ = true;
};

}  // namespace paceline::cc
