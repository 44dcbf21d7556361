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
constexpr unsigned kBucketBits = 10;     // of a count of limits
constexpr std::size_t kFewLimits = 64;   // likewise
// Two limits per weight that differ, differ by at least 1 / 255^2 > 2^-16: whole multiples of 2^-16
// keep the order exactly.
constexpr unsigned kRatioBits = 16;

// Those from `least` on, `width` of them at most. Computed, not asked: nothing predicts it.
void keep(std::vector<std::uint32_t>& limits, std::uint64_t least, std::uint64_t width) {
  std::uint32_t* end = limits.data();
  for (const std::uint32_t limit : limits) {
    *end = limit;
    const std::uint64_t from = limit - least;  // beyond 2^63 if it is less
    end += ((from - width) >> 63) & ~(from >> 63);
  }
  limits.resize(static_cast<std::size_t>(end - limits.data()));
}

}  // namespace

void WaterFill::reserve(std::size_t slots) {
  keys_.reserve(slots);
  scratch_.reserve(slots);
  ratios_.reserve(slots);
  highest_.reserve(slots);
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
WaterFill::Level WaterFill::find_level(std::uint64_t capacity) {
  const auto even =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(capacity / limits_.size(), 0xFFFF'FFFF));
  std::uint32_t level = std::max(level_, even);
  for (;;) {
    const Below below = add_up(level);
    if (below.sum > capacity) {  // nobody knew; at an even level it is not
      level = even;
      continue;
    }
    if (below.beyond == 0) return {};  // everybody has the limit
    const std::uint64_t rest = capacity - below.sum;
    const std::uint64_t next = rest / below.beyond;
    if (next == level) {
      level_ = level;
      return {level, below.beyond, static_cast<std::uint32_t>(rest % below.beyond)};
    }
    level = static_cast<std::uint32_t>(std::min<std::uint64_t>(next, 0xFFFF'FFFF));
  }
}

// The limit that the rank-th slot from the end of the order has, rank at least 1, of those above
// the level.
std::uint32_t WaterFill::find_limit_from_top(std::uint32_t level, std::uint32_t rank) {
  highest_.assign(limits_.begin(), limits_.end());
  keep(highest_, std::uint64_t{level} + 1, std::uint64_t{1} << 32);
  for (;;) {
    std::uint32_t least = 0xFFFF'FFFF;
    std::uint32_t most = 0;
    for (const std::uint32_t limit : highest_) {
      least = std::min(least, limit);
      most = std::max(most, limit);
    }
    if (least == most) return least;
    if (highest_.size() <= kFewLimits) {
      const auto place = highest_.end() - static_cast<std::ptrdiff_t>(rank);
      std::nth_element(highest_.begin(), place, highest_.end());
      return *place;
    }
    const auto width = static_cast<unsigned>(std::bit_width(most - least));
    const unsigned shift = width > kBucketBits ? width - kBucketBits : 0;
    std::array<std::uint32_t, std::size_t{1} << kBucketBits> counts{};
    for (const std::uint32_t limit : highest_) ++counts[(limit - least) >> shift];
    std::uint32_t bucket = (most - least) >> shift;
    for (; counts[bucket] < rank; --bucket) rank -= counts[bucket];
    keep(highest_, least + (std::uint64_t{bucket} << shift), std::uint64_t{1} << shift);
  }
}

void WaterFill::fill_equal(std::uint64_t capacity, std::span<std::uint32_t> shares) {
  const std::size_t size = limits_.size();
  const Level level = find_level(capacity);
  std::uint32_t from = 0xFFFF'FFFF;  // limits above it have a unit more...
  std::size_t bound = size;          // ... and this one itself, from that slot on
  if (level.slots == 0) {
    std::copy(limits_.begin(), limits_.end(), shares.begin());
    return;
  }
  if (level.left > 0) {
    from = find_limit_from_top(level.share, level.left);
    std::uint32_t higher = 0;
    for (const std::uint32_t limit : limits_) higher += limit > from ? 1 : 0;
    for (std::uint32_t same = level.left - higher; same > 0;) {
      same -= limits_[--bound] == from ? 1 : 0;
    }
  }
  const std::uint32_t* const limits = limits_.data();
  for (std::size_t i = 0; i < bound; ++i) {
    shares[i] = std::min(limits[i], level.share) + (limits[i] > from ? 1 : 0);
  }
  for (std::size_t i = bound; i < size; ++i) {
    shares[i] = std::min(limits[i], level.share) + (limits[i] >= from ? 1 : 0);
  }
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
  std::uint64_t left = capacity;
  for (; place < size; ++place) {
    const std::uint64_t share = capacity * weights_[slot(place)] / weights;
    shares[slot(place)] = static_cast<std::uint32_t>(share);
    left -= share;
  }
  for (std::size_t i = size - left; i < size; ++i) ++shares[slot(i)];
}

}  // namespace paceline::cc
