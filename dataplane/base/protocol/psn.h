// 24-bit packet sequence numbers (InfiniBand Architecture Specification vol. 1, 9.7.2): all
// comparisons are modulo 2^24, valid while the two numbers are less than 2^23 apart.
#pragma once

#include <cstdint>

namespace paceline {

class Psn {
 public:
  static constexpr std::uint32_t kMask = 0xFF'FFFF;

  constexpr Psn() = default;
  constexpr explicit Psn(std::uint32_t value) : value_(value & kMask) {}

  constexpr std::uint32_t value() const { return value_; }
  constexpr Psn operator+(std::uint32_t n) const { return Psn(value_ + n); }
  constexpr Psn operator-(std::uint32_t n) const { return Psn(value_ - n); }
  constexpr Psn& operator++() {
    value_ = (value_ + 1) & kMask;
    return *this;
  }
  friend constexpr bool operator==(Psn, Psn) = default;

  // Signed distance from b to a: -2^23 .. 2^23-1; positive when a comes after b.
  friend constexpr std::int32_t distance(Psn a, Psn b) {
    return static_cast<std::int32_t>((a.value_ - b.value_) << 8) >> 8;
  }
  friend constexpr bool before(Psn a, Psn b) { return distance(a, b) < 0; }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace paceline
