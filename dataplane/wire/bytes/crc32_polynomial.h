// Arithmetic on polynomials over GF(2) modulo the CRC-32 polynomial, at compile time: where every
// constant of the CRC kernels comes from.
//
// Reflected form: bit 31 of a word is the coefficient of x^0, bit 0 that of x^31.
#pragma once

#include <cstdint>

namespace paceline::wire::crc {

inline constexpr std::uint32_t kPolynomial = 0xEDB88320;  // without x^32

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a >> 1) ^ ((a & 1U) != 0 ? kPolynomial : 0U);
}

// x^n mod P.
constexpr std::uint32_t x_to(unsigned n) {
  std::uint32_t a = 0x8000'0000U;
  for (unsigned i = 0; i < n; ++i) a = times_x(a);
  return a;
}

// A factor for carry-less multiplication: the product of two reflected words comes out one bit
// short of its place, so the constant is kept shifted by one.
constexpr std::uint64_t fold_constant(unsigned n) { return std::uint64_t{x_to(n)} << 1; }

// floor(x^64 / P), 33 bits, reflected: the quotient that Barrett reduction multiplies by.
constexpr std::uint64_t barrett_quotient() {
  // Long division in normal (not reflected) bit order; P = x^32 + ...
  constexpr std::uint64_t kNormal = 0x1'04C1'1DB7;
  std::uint64_t quotient = 0;
  std::uint64_t remainder = std::uint64_t{1} << 32;  // the top 33 bits of x^64
  for (int bit = 32; bit >= 0; --bit) {
    if ((remainder >> 32) != 0) {
      quotient |= std::uint64_t{1} << bit;
      remainder ^= kNormal;
    }
    remainder <<= 1;
  }
  std::uint64_t reflected = 0;
  for (unsigned bit = 0; bit <= 32; ++bit) {
    if ((quotient >> bit) & 1U) reflected |= std::uint64_t{1} << (32 - bit);
  }
  return reflected;
}

// P itself with its x^32, reflected: 33 bits.
inline constexpr std::uint64_t kBarrettPolynomial = (std::uint64_t{kPolynomial} << 1) | 1U;

}  // namespace paceline::wire::crc
