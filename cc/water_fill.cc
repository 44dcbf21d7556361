#include "cc/water_fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <utility>

namespace paceline::cc {
namespace {

constexpr unsigned kMostDigitBits = 11;
constexpr std::size_t kFewSlots = 256;  // a comparison sort is cheaper than clearing the digits
// Two limits per weight that differ, differ by at least 1 / 255^2 > 2^-16: whole multiples of 2^-16
// keep the order exactly.
constexpr unsigned kRatioBits = 16;

}  // namespace

void WaterFill::reserve(std::size_t slots) {
  keys_.reserve(slots);
  scratch_.reserve(slots);
  weights_.reserve(slots);
  shares_.reserve(slots);
}

// Least significant digit first: stable, so equal limits stay in the order of their indices.
void WaterFill::radix_sort() {
  scratch_.resize(keys_.size());
  const auto bits = static_cast<unsigned>(std::bit_width(limit_bits_));
  if (bits == 0) return;
  const unsigned passes = (bits + kMostDigitBits - 1) / kMostDigitBits;
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

void WaterFill::sort() {
  if (mixed_) {
    limit_bits_ = 0;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::uint64_t ratio = (keys_[i] >> kIndexBits << kRatioBits) / weights_[i];
      limit_bits_ |= ratio;
      keys_[i] = ratio << kIndexBits | i;
    }
    sorted_ = false;
  }
  if (sorted_) return;
  if (keys_.size() <= kFewSlots) {
    std::sort(keys_.begin(), keys_.end());
  } else {
    radix_sort();
  }
}

void WaterFill::fill(std::uint64_t capacity) {
  assert(keys_.size() <= kMaxSlots);
  const std::size_t size = keys_.size();
  if (size == 0) return;
  sort();
  shares_.resize(size);
  if (mixed_) {
    fill_weighted(capacity);
    return;
  }
  std::size_t place = 0;
  for (; place < size; ++place) {
    const std::uint64_t limit = keys_[place] >> kIndexBits;
    if (limit * (size - place) > capacity) break;
    shares_[place] = static_cast<std::uint32_t>(limit);
    capacity -= limit;
  }
  if (place == size) return;
  // From here on everybody is above the level, by enough for a unit more: limit > the exact level.
  const std::uint64_t level = capacity / (size - place);
  const std::uint64_t left = capacity % (size - place);
  for (; place < size - left; ++place) shares_[place] = static_cast<std::uint32_t>(level);
  for (; place < size; ++place) shares_[place] = static_cast<std::uint32_t>(level + 1);
}

void WaterFill::fill_weighted(std::uint64_t capacity) {
  const std::size_t size = keys_.size();
  const auto weight = [this](std::size_t place) -> std::uint64_t { return weights_[slot(place)]; };
  std::uint64_t weights = weight_sum_;
  std::size_t place = 0;
  for (; place < size; ++place) {
    // The limit again from its ratio, which was rounded down by less than one part.
    const std::uint64_t ratio = keys_[place] >> kIndexBits;
    const std::uint64_t limit = (ratio * weight(place) + (1 << kRatioBits) - 1) >> kRatioBits;
    if (limit * weights > capacity * weight(place)) break;
    shares_[place] = static_cast<std::uint32_t>(limit);
    capacity -= limit;
    weights -= weight(place);
  }
  if (place == size) return;
  std::uint64_t left = capacity;
  for (; place < size; ++place) {
    shares_[place] = static_cast<std::uint32_t>(capacity * weight(place) / weights);
    left -= shares_[place];
  }
  for (std::size_t i = size - left; i < size; ++i) ++shares_[i];
}

}  // namespace paceline::cc
