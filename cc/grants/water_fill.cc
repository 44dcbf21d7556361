#include "cc/grants/water_fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <utility>

namespace paceline::cc {
namespace {

constexpr unsigned kMostDigitBits = 11;
constexpr unsigned kFewDigitBits = 8;    // where clearing more digits is not worth a pass less
constexpr std::size_t kManySlots = 512;  // from here on it is
constexpr std::size_t kFewSlots = 48;    // a comparison sort is cheaper than clearing the digits
// Two limits per weight that differ, differ by at least 1 / 255^2 > 2^-16: whole multiples of 2^-16
// keep the order exactly.
constexpr unsigned kRatioBits = 16;

}  // namespace

void WaterFill::reserve(std::size_t slots) {
  keys_.reserve(slots);
  scratch_.reserve(slots);
  ratios_.reserve(slots);
}

// Least significant digit first: stable, so equal limits stay in the order of their indices.
void WaterFill::radix_sort(std::uint64_t bits_set) {
  scratch_.resize(keys_.size());
  const auto bits = static_cast<unsigned>(std::bit_width(bits_set));
  if (bits == 0) return;
  const unsigned most = keys_.size() < kManySlots ? kFewDigitBits : kMostDigitBits;
  const unsigned passes = (bits + most - 1) / most;
  const unsigned digit_bits = (bits + passes - 1) / passes;
  const std::size_t digits = std::size_t{1} << digit_bits;
  for (unsigned pass = 0; pass < passes; ++pass) {
    const unsigned shift = kIndexBits + pass * digit_bits;
    std::array<std::uint32_t, std::size_t{1} << kMostDigitBits> place;
    std::fill_n(place.begin(), digits, 0U);
    for (const std::uint64_t key : keys_) ++place[key >> shift & (digits - 1)];
    std::uint32_t next = 0;
    for (std::size_t digit = 0; digit < digits; ++digit) {
      next += std::exchange(place[digit], next);
    }
    std::uint64_t* const sorted = scratch_.data();
    for (const std::uint64_t key : keys_) sorted[place[key >> shift & (digits - 1)]++] = key;
    keys_.swap(scratch_);
  }
}

void WaterFill::sort_keys() {
  if (keys_.size() <= kFewSlots) {
    std::sort(keys_.begin(), keys_.end());
    return;
  }
  std::uint64_t bits = 0;
  std::uint64_t last = 0;
  bool sorted = true;
  for (const std::uint64_t key : keys_) {
    bits |= key;
    sorted &= key >= last;
    last = key;
  }
  if (!sorted) radix_sort(bits >> kIndexBits);
}

void WaterFill::order(std::span<std::uint32_t> slots) {
  keys_.resize(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::uint32_t slot = slots[i];
    keys_[i] = (mixed_ ? ratios_[slot] : limits_[slot]) << kIndexBits | slot;
  }
  sort_keys();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i] = static_cast<std::uint32_t>(keys_[i] & (kMaxSlots - 1));
  }
}

void WaterFill::fill(std::span<const std::uint32_t> limits, std::span<const std::uint8_t> weights,
                     std::uint64_t capacity, std::span<std::uint32_t> shares) {
  assert(limits.size() <= kMaxSlots && weights.size() == limits.size());
  assert(shares.size() == limits.size());
  limits_ = limits;
  weights_ = weights;
  if (limits.empty()) return;
  unsigned differ = 0;
  const std::uint8_t first = weights[0];
  for (const std::uint8_t weight : weights) differ |= static_cast<unsigned>(weight ^ first);
  mixed_ = differ != 0;
  if (mixed_) {
    fill_weighted(capacity, shares);
  } else {
    fill_equal(capacity, shares);
  }
}

WaterFill::Below WaterFill::add_up(std::uint32_t level) const {
  // In halves, all of 32 bits, and the count by itself: four slots at a time. kMaxSlots of them do
  // not overflow.
  static_assert(kMaxSlots <= std::size_t{1} << 16);
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  for (const std::uint32_t limit : limits_) {
    const std::uint32_t part = std::min(limit, level);
    low += part & 0xFFFF;
    high += part >> 16;
  }
  std::uint32_t within = 0;
  for (const std::uint32_t limit : limits_) within += limit <= level ? 1 : 0;
  const auto beyond = static_cast<std::uint32_t>(limits_.size()) - within;
  return {(std::uint64_t{high} << 16) + low - std::uint64_t{beyond} * level, beyond};
}

// A step goes from any level to one not above the right one, and from there on upwards: what the
// slots would get at a level grows ever less with it.
std::uint32_t WaterFill::find_level(std::uint64_t capacity) {
  constexpr std::uint32_t kMost = 0xFFFF'FFFF;
  const auto even =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(capacity / limits_.size(), kMost));
  std::uint32_t level = std::max(level_, even);
  for (;;) {
    const Below below = add_up(level);
    if (below.sum > capacity) {  // nobody knew; at an even level it is not
      level = even;
      continue;
    }
    if (below.beyond == 0) return kMost;  // everybody has the limit
    const std::uint64_t next = (capacity - below.sum) / below.beyond;
    if (next == level) {
      level_ = level;
      return level;
    }
    level = static_cast<std::uint32_t>(std::min<std::uint64_t>(next, kMost));
  }
}

void WaterFill::fill_equal(std::uint64_t capacity, std::span<std::uint32_t> shares) {
  const std::uint32_t level = find_level(capacity);
  const std::uint32_t* const limits = limits_.data();
  for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = std::min(limits[i], level);
}

void WaterFill::fill_weighted(std::uint64_t capacity, std::span<std::uint32_t> shares) {
  const std::size_t size = limits_.size();
  ratios_.resize(size);
  keys_.resize(size);
  std::uint64_t weights = 0;
  for (std::size_t i = 0; i < size; ++i) {
    ratios_[i] = (std::uint64_t{limits_[i]} << kRatioBits) / weights_[i];
    keys_[i] = ratios_[i] << kIndexBits | i;
    weights += weights_[i];
  }
  sort_keys();
  const auto slot = [this](std::size_t place) { return keys_[place] & (kMaxSlots - 1); };
  std::size_t place = 0;
  for (; place < size; ++place) {
    const std::uint64_t limit = limits_[slot(place)];
    const std::uint64_t weight = weights_[slot(place)];
    if (limit * weights > capacity * weight) break;
    shares[slot(place)] = static_cast<std::uint32_t>(limit);
    capacity -= limit;
    weights -= weight;
  }
  if (place == size) return;
  for (; place < size; ++place) {
    shares[slot(place)] = static_cast<std::uint32_t>(capacity * weights_[slot(place)] / weights);
  }
}

}  // namespace paceline::cc
