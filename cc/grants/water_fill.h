// Max-min shares of a capacity among slots that each have a limit and a weight. Every slot gets a
// common level times its weight, or its limit if that is less, in whole units. The remainder, less
// than a unit a slot, is not given out, so that equal slots get exactly equal shares: senders that
// take turns go on taking turns.
//
// Slots are ordered by limit per weight, then by index. The order is total, so the result does not
// depend on how it is computed.
//
// Cost: linear. With equal weights a few passes over the limits find the level (Newton's method on
// a concave, piecewise linear function: each step halves the distance or the slope), and only the
// slots that order() is asked for are sorted. With different weights all slots are sorted by radix.
// No allocation after reserve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace paceline::cc {

class WaterFill {
 public:
  static constexpr std::size_t kMaxSlots = 1 << 14;

  void reserve(std::size_t slots);
  // Shares by slot; as many limits, weights (1 to 255) and shares as there are slots, at most
  // kMaxSlots. `limits` stay with the caller, and are read again by order().
  void fill(std::span<const std::uint32_t> limits, std::span<const std::uint8_t> weights,
            std::uint64_t capacity, std::span<std::uint32_t> shares);
  // Sorts some slots of the last fill, given by rising index, into the order above.
  void order(std::span<std::uint32_t> slots);

 private:
  static constexpr unsigned kIndexBits = 14;
  static_assert(kMaxSlots == std::size_t{1} << kIndexBits);

  struct Below {
    std::uint64_t sum = 0;     // of the limits up to a level
    std::uint32_t beyond = 0;  // slots with more
  };
  Below add_up(std::uint32_t level) const;
  std::uint32_t find_level(std::uint64_t capacity);
  void fill_equal(std::uint64_t capacity, std::span<std::uint32_t> shares);
  void fill_weighted(std::uint64_t capacity, std::span<std::uint32_t> shares);
  void sort_keys();
  void radix_sort(std::uint64_t bits);

  std::span<const std::uint32_t> limits_;
  std::span<const std::uint8_t> weights_;
  // Limit (per weight, in 2^-16, where weights differ) and index, of the slots to be sorted.
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint64_t> scratch_;
  std::vector<std::uint64_t> ratios_;  // by index, where weights differ
  std::uint32_t level_ = 0;            // of the last fill: where the search for the next begins
  bool mixed_ = false;                 // weights differ
};

}  // namespace paceline::cc
