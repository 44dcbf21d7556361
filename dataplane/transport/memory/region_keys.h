// Keys that nobody can predict: a secret of 128 bits and a count, through SipHash-2-4 (Aumasson and
// Bernstein, "SipHash: a fast short-input PRF", Indocrypt 2012). Tables with the same secret draw
// the same keys in the same order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace paceline::transport {

struct KeySecret {
  std::array<std::uint64_t, 2> words{};
};

// SipHash-2-4 of the 8 bytes of `number`, least significant first.
constexpr std::uint64_t sip_hash(const KeySecret& secret, std::uint64_t number) {
  std::uint64_t a = secret.words[0] ^ 0x736F'6D65'7073'6575ULL;
  std::uint64_t b = secret.words[1] ^ 0x646F'7261'6E64'6F6DULL;
  std::uint64_t c = secret.words[0] ^ 0x6C79'6765'6E65'7261ULL;
  std::uint64_t d = secret.words[1] ^ 0x7465'6462'7974'6573ULL;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      a += b;
      c += d;
      b = std::rotl(b, 13) ^ a;
      d = std::rotl(d, 16) ^ c;
      a = std::rotl(a, 32);
      c += b;
      a += d;
      b = std::rotl(b, 17) ^ c;
      d = std::rotl(d, 21) ^ a;
      c = std::rotl(c, 32);
    }
  };
  constexpr std::uint64_t kLength = std::uint64_t{8} << 56U;
  for (const std::uint64_t word : {number, kLength}) {
    d ^= word;
    rounds(2);
    a ^= word;
  }
  c ^= 0xFF;
  rounds(4);
  return a ^ b ^ c ^ d;
}

}  // namespace paceline::transport
