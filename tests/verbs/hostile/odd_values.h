// Values that break things: boundaries, and values that mean something elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::test {

class OddValues {
 public:
  explicit OddValues(std::uint64_t seed) : random_(seed, 2) {}

  std::uint64_t below(std::uint64_t bound) { return random_.next() % bound; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::uint64_t bits() { return random_.next(); }
  // Handles, keys, numbers and addresses that are worth trying.
  void learn(std::uint64_t value) {
    if (learnt_.size() < 256) {
      learnt_.push_back(value);
    } else {
      learnt_[below(learnt_.size())] = value;
    }
  }
  std::uint64_t any() {
    static constexpr std::uint64_t kBoundaries[] = {
        0,          1,          2,          3,          63,           64,
        65,         255,        256,        4095,       4096,         65535,
        65536,      0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF,   0x100000000,
        1ULL << 40, 1ULL << 61, 1ULL << 62, 1ULL << 63, ~0ULL - 4095, ~0ULL};
    switch (below(4)) {
      case 0:
        return kBoundaries[below(std::size(kBoundaries))];
      case 1:
        return below(24);
      case 2:
        return learnt_.empty() ? 0 : learnt_[below(learnt_.size())] + below(3) - 1;
      default:
        return bits() >> below(64);
    }
  }
  void scribble(std::span<std::byte> bytes) {
    for (std::byte& b : bytes) b = static_cast<std::byte>(bits());
  }
  // One number of 1, 2, 4 or 8 bytes somewhere, aligned as such.
  void spoil(std::span<std::byte> bytes) {
    const std::size_t size = std::size_t{1} << below(4);
    if (bytes.size() < size) return;
    const std::size_t at = below(bytes.size() / size) * size;
    const std::uint64_t value = any();
    for (std::size_t i = 0; i < size; ++i) {
      bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
    }
  }

 private:
  Random random_;
  std::vector<std::uint64_t> learnt_;
};

}  // namespace paceline::test
