// CRC-32 by folding with carry-less multiplication, after V. Gopal et al., "Fast CRC Computation
// for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009.
//
// An accumulator of 128 bits stands for a polynomial congruent to the message so far. To append D
// bits, its two halves are multiplied by x^(D+32) and x^(D-32) modulo P and the next block is
// added. (The halves are 64 bits apart, and a reflected 64 x 32-bit product carries a factor x^32:
// hence +-32.)
//
// Lengths that are not multiples of 16 are handled at the front: zeros before a message do not
// change a CRC whose register starts at zero, so the first bytes are moved to the end of a block of
// zeros, and the register's real start value is added to the first four bytes of the message,
// wherever they lie.
#include "dataplane/wire/bytes/crc32.h"

#include <cstdlib>

#include "dataplane/wire/bytes/crc32_polynomial.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

namespace paceline::wire {
namespace {

#define PACELINE_PCLMUL [[gnu::target("pclmul,sse4.1"), gnu::always_inline]] inline
#define PACELINE_VPCLMUL \
  [[gnu::target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.1"), gnu::always_inline]] inline

struct FoldBy {
  std::uint64_t low, high;  // factors of the accumulator's low (earlier) and high half
};
template <unsigned kBits>
constexpr FoldBy kFold{crc::fold_constant(kBits + 32), crc::fold_constant(kBits - 32)};

PACELINE_PCLMUL __m128i load(const std::byte* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

template <unsigned kBits>
PACELINE_PCLMUL __m128i fold(__m128i accumulator, __m128i next) {
  const __m128i k = _mm_set_epi64x(static_cast<long long>(kFold<kBits>.high),
                                   static_cast<long long>(kFold<kBits>.low));
  const __m128i low = _mm_clmulepi64_si128(accumulator, k, 0x00);
  const __m128i high = _mm_clmulepi64_si128(accumulator, k, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// The remainder modulo P of an accumulator times x^32: the CRC register.
PACELINE_PCLMUL std::uint32_t reduce(__m128i x) {
  const __m128i low32 = _mm_setr_epi32(-1, 0, 0, 0);
  // 128 bits to 96: the earlier half times x^96.
  const __m128i k96_64 = _mm_set_epi64x(static_cast<long long>(crc::fold_constant(64)),
                                        static_cast<long long>(crc::fold_constant(96)));
  x = _mm_xor_si128(_mm_clmulepi64_si128(x, k96_64, 0x00), _mm_srli_si128(x, 8));
  // 96 to 64: the earliest 32 bits times x^64.
  x = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(x, low32), k96_64, 0x10),
                    _mm_srli_si128(x, 4));
  // 64 to 32, Barrett: x - floor(x / P) * P with the quotient from floor(x^64 / P).
  const __m128i barrett = _mm_set_epi64x(static_cast<long long>(crc::kBarrettPolynomial),
                                         static_cast<long long>(crc::barrett_quotient()));
  __m128i q = _mm_clmulepi64_si128(_mm_and_si128(x, low32), barrett, 0x00);
  q = _mm_clmulepi64_si128(_mm_and_si128(q, low32), barrett, 0x10);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(x, q), 1));
}

// Indices for a byte shuffle: 16 bytes read from kShift + 16 - n move a vector n places towards the
// end, from kShift + 16 + n towards the start; an index with bit 7 set gives zero.
alignas(16) constexpr std::uint8_t kShift[48] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15,
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};

PACELINE_PCLMUL __m128i towards_end(__m128i x, std::size_t places) {
  const auto* at = reinterpret_cast<const __m128i*>(kShift + 16 - places);
  return _mm_shuffle_epi8(x, _mm_loadu_si128(at));
}
PACELINE_PCLMUL __m128i towards_start(__m128i x, std::size_t places) {
  const auto* at = reinterpret_cast<const __m128i*>(kShift + 16 + places);
  return _mm_shuffle_epi8(x, _mm_loadu_si128(at));
}

// Fewer than 16 bytes, n > 0: one block, preceded by zeros.
PACELINE_PCLMUL std::uint32_t short_message(std::uint32_t crc, const std::byte* p, std::size_t n) {
  alignas(16) std::byte block[16] = {};
  std::memcpy(block + (16 - n), p, n);
  const __m128i start = _mm_cvtsi32_si128(static_cast<int>(crc));
  __m128i x = _mm_xor_si128(_mm_load_si128(reinterpret_cast<const __m128i*>(block)),
                            towards_end(start, 16 - n));
  if (n >= 4) return reduce(x);
  // The last 4 - n bytes of the register lie beyond the message: they belong to the remainder as
  // they are, shifted down.
  return reduce(x) ^ (crc >> (8 * n));
}

// 16 bytes or more: the first block, made of the odd bytes if there are any, with the register's
// start value in. Moves p and n past what it took; n is a multiple of 16 then. What of the start
// value does not fit into the first block is left in `carry`, to be added to the second.
PACELINE_PCLMUL __m128i first_block(std::uint32_t crc, const std::byte*& p, std::size_t& n,
                                    __m128i& carry) {
  const __m128i start = _mm_cvtsi32_si128(static_cast<int>(crc));
  const std::size_t odd = n % 16;
  const std::size_t taken = odd == 0 ? 16 : odd;
  const __m128i x = _mm_xor_si128(load(p), start);
  p += taken;
  n -= taken;
  carry = taken < 4 ? towards_start(start, taken) : _mm_setzero_si128();
  return towards_end(x, 16 - taken);
}

[[gnu::target("pclmul,sse4.1")]] std::uint32_t pclmul_kernel(std::uint32_t crc, const std::byte* p,
                                                             std::size_t n) {
  __m128i carry;
  __m128i x0 = first_block(crc, p, n, carry);
  if (n >= 16 + 64) {
    // Four accumulators, each 16 bytes of a 64-byte stride; the first block is folded into the
    // second to start with.
    x0 = fold<128>(x0, _mm_xor_si128(load(p), carry));
    __m128i x1 = load(p + 16);
    __m128i x2 = load(p + 32);
    __m128i x3 = load(p + 48);
    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
      x0 = fold<512>(x0, load(p));
      x1 = fold<512>(x1, load(p + 16));
      x2 = fold<512>(x2, load(p + 32));
      x3 = fold<512>(x3, load(p + 48));
    }
    x0 = fold<128>(x0, x1);
    x0 = fold<128>(x0, x2);
    x0 = fold<128>(x0, x3);
  } else if (n > 0) {
    x0 = fold<128>(x0, _mm_xor_si128(load(p), carry));
    p += 16;
    n -= 16;
  }
  for (; n > 0; p += 16, n -= 16) x0 = fold<128>(x0, load(p));
  return reduce(x0);
}

template <unsigned kBits>
PACELINE_VPCLMUL __m512i fold_wide(__m512i accumulator, __m512i next) {
  const __m512i k = _mm512_set4_epi64(
      static_cast<long long>(kFold<kBits>.high), static_cast<long long>(kFold<kBits>.low),
      static_cast<long long>(kFold<kBits>.high), static_cast<long long>(kFold<kBits>.low));
  const __m512i low = _mm512_clmulepi64_epi128(accumulator, k, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(accumulator, k, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);  // exclusive or of three
}

// 256 bytes at least remain behind the first block when this is called.
[[gnu::target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.1")]] std::uint32_t vpclmul_kernel(
    std::uint32_t crc, const std::byte* p, std::size_t n) {
  __m128i carry;
  const __m128i first = first_block(crc, p, n, carry);
  const __m128i start = fold<128>(first, carry);  // to be added to the first 16 bytes at p
  __m512i x0 = _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_zextsi128_si512(start));
  __m512i x1 = _mm512_loadu_si512(p + 64);
  __m512i x2 = _mm512_loadu_si512(p + 128);
  __m512i x3 = _mm512_loadu_si512(p + 192);
  for (p += 256, n -= 256; n >= 256; p += 256, n -= 256) {
    x0 = fold_wide<2048>(x0, _mm512_loadu_si512(p));
    x1 = fold_wide<2048>(x1, _mm512_loadu_si512(p + 64));
    x2 = fold_wide<2048>(x2, _mm512_loadu_si512(p + 128));
    x3 = fold_wide<2048>(x3, _mm512_loadu_si512(p + 192));
  }
  x0 = fold_wide<512>(x0, x1);
  x0 = fold_wide<512>(x0, x2);
  x0 = fold_wide<512>(x0, x3);
  for (; n >= 64; p += 64, n -= 64) x0 = fold_wide<512>(x0, _mm512_loadu_si512(p));
  __m128i x = _mm512_maskz_extracti32x4_epi32(0xF, x0, 0);
  // Masked: GCC 12 warns of the plain form inside its own header.
  x = fold<128>(x, _mm512_maskz_extracti32x4_epi32(0xF, x0, 1));
  x = fold<128>(x, _mm512_maskz_extracti32x4_epi32(0xF, x0, 2));
  x = fold<128>(x, _mm512_maskz_extracti32x4_epi32(0xF, x0, 3));
  for (; n > 0; p += 16, n -= 16) x = fold<128>(x, load(p));
  return reduce(x);
}

[[gnu::target("pclmul,sse4.1")]] std::uint32_t short_kernel(std::uint32_t crc, const std::byte* p,
                                                            std::size_t n) {
  return short_message(crc, p, n);
}

}  // namespace

bool crc32_has_pclmul() {
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

bool crc32_has_vpclmul() {
  return crc32_has_pclmul() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("vpclmulqdq");
}

std::uint32_t crc32_pclmul(std::uint32_t crc, std::span<const std::byte> data) {
  const std::size_t n = data.size();
  if (n == 0) return crc;
  return ~(n < 16 ? short_kernel(~crc, data.data(), n) : pclmul_kernel(~crc, data.data(), n));
}

std::uint32_t crc32_vpclmul(std::uint32_t crc, std::span<const std::byte> data) {
  if (data.size() < 256 + 16) return crc32_pclmul(crc, data);
  return ~vpclmul_kernel(~crc, data.data(), data.size());
}

}  // namespace paceline::wire

#else

namespace paceline::wire {

bool crc32_has_pclmul() { return false; }
bool crc32_has_vpclmul() { return false; }
std::uint32_t crc32_pclmul(std::uint32_t, std::span<const std::byte>) { std::abort(); }
std::uint32_t crc32_vpclmul(std::uint32_t, std::span<const std::byte>) { std::abort(); }

}  // namespace paceline::wire

#endif
