// Logarithms to the base of 2 by integers alone: the same on every machine, a few instructions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "dataplane/telemetry/message_figures.h"

namespace paceline::telemetry {

namespace detail {

inline constexpr unsigned kLogBits = 20;
static_assert(kLogUnit == 1U << kLogBits);

// log2(1 + i / 256) in 1/kLogUnit, rounded down, bit by bit: squaring doubles the logarithm.
constexpr std::array<std::uint32_t, 257> log_table() {
  std::array<std::uint32_t, 257> table{};
  for (std::uint64_t i = 0; i < 256; ++i) {
    std::uint64_t x = (256 + i) << 22U;  // 1.30 fixed point
    std::uint32_t log = 0;
    for (unsigned bit = 0; bit < kLogBits; ++bit) {
      x = x * x >> 30U;
      log <<= 1U;
      if (x >= std::uint64_t{2} << 30U) {
        x >>= 1U;
        log |= 1U;
      }
    }
    table[i] = log;
  }
  table[256] = 1U << kLogBits;
  return table;
}
inline constexpr std::array<std::uint32_t, 257> kLogTable = log_table();

}  // namespace detail

// log2(value) in units of 1/kLogUnit, with an error of at most 5 units; value > 0.
constexpr std::uint64_t log2_units(std::uint64_t value) {
  const auto whole = static_cast<unsigned>(63 - std::countl_zero(value));
  const std::uint64_t fraction = value << (63 - whole) << 1U;  // of 2^64
  const std::size_t place = fraction >> 56U;
  const std::uint64_t between = (fraction >> 24U) & 0xFFFF'FFFFU;  // of 2^32
  const std::uint64_t low = detail::kLogTable[place];
  const std::uint64_t step = detail::kLogTable[place + 1] - low;
  return (std::uint64_t{whole} << detail::kLogBits) + low + (step * between >> 32U);
}

}  // namespace paceline::telemetry
