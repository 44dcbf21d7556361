#include "dataplane/base/numbers/math.h"

#include <bit>
#include <cstdint>
#include <limits>

namespace paceline {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << 52) - 1;
constexpr std::uint64_t kOneBits = 0x3FF0'0000'0000'0000;
constexpr std::uint64_t kInfBits = 0x7FF0'0000'0000'0000;
constexpr std::uint64_t kSqrt2Mantissa = 0x6A09'E667'F3BC'D;  // of the double nearest sqrt(2)

// ln 2 in two parts. The upper one has 36 significant bits, so its product with an exponent (at
// most 11 bits) is exact; the lower one carries the next 53 bits.
constexpr double kLn2Hi = 0x1.62e42fefap-1;
constexpr double kLn2Lo = 0x1.cf79abc9e3b3ap-40;
constexpr double kInvLn2 = 0x1.71547652b82fep+0;

bool is_nan(double x) { return x != x; }
double magnitude(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & ~kSignBit);
}
bool has_sign(double x) { return (std::bit_cast<std::uint64_t>(x) & kSignBit) != 0; }

// An unevaluated sum of two doubles, |lo| <= ulp(hi) / 2: about 106 bits.
struct Pair {
  double hi;
  double lo;
};

// a + b exactly, for |a| >= |b| or a == 0 (Dekker, Numerische Mathematik 18, 1971).
Pair fast_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// a + b exactly, for any order (Knuth, TAOCP vol. 2, 4.2.2, theorem B).
Pair exact_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// Veltkamp's split into two halves of at most 26 bits. |a| must stay below 2^996.
Pair split(double a) {
  const double scaled = 0x1.0p27 * a + a;
  const double hi = scaled - (scaled - a);
  return {hi, a - hi};
}

// a * b exactly (Dekker), unless the error term underflows.
Pair exact_product(double a, double b) {
  const double product = a * b;
  const Pair x = split(a);
  const Pair y = split(b);
  const double error = ((x.hi * y.hi - product) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo;
  return {product, error};
}

Pair operator+(Pair a, Pair b) {
  const Pair sum = exact_sum(a.hi, b.hi);
  return fast_sum(sum.hi, sum.lo + (a.lo + b.lo));
}

Pair operator*(Pair a, Pair b) {
  const Pair product = exact_product(a.hi, b.hi);
  return fast_sum(product.hi, product.lo + (a.hi * b.lo + a.lo * b.hi));
}

// x = 2^exponent * mantissa with mantissa in [sqrt(1/2), sqrt(2)), so that arguments near 1 have
// exponent 0 and suffer no cancellation. x must be positive and finite.
struct Split {
  int exponent;
  double mantissa;
};

Split split_binary(double x) {
  int exponent = 0;
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  if (bits <= kMantissaMask) {  // subnormal
    bits = std::bit_cast<std::uint64_t>(x * 0x1.0p54);
    exponent = -54;
  }
  exponent += static_cast<int>(bits >> 52) - 1023;
  std::uint64_t mantissa = (bits & kMantissaMask) | kOneBits;
  if ((bits & kMantissaMask) >= kSqrt2Mantissa) {
    mantissa -= std::uint64_t{1} << 52;  // halves it
    ++exponent;
  }
  return {exponent, std::bit_cast<double>(mantissa)};
}

// Both logarithms use log(1 + f) = 2 atanh(s), s = f / (2 + f), |s| <= 0.1716, and the series
// atanh(s) / s = 1 + z/3 + z^2/5 + ..., z = s^2 <= 0.02945. Cut after z^10 the rest is < 2^-57.
double atanh_tail_from_cube(double z) {  // 1/7 + z/9 + ... + z^7/21
  double p = 1.0 / 21;
  p = p * z + 1.0 / 19;
  p = p * z + 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  return p * z + 1.0 / 7;
}

// The logarithm to about 2^-67, as det_pow needs it: its error is multiplied by up to 745. The
// terms up to z^2 are pairs; the series goes three terms further than above.
Pair log_pair(double x) {
  const Split parts = split_binary(x);
  const double f = parts.mantissa - 1.0;  // exact
  const Pair denominator = exact_sum(2.0, f);
  const double quotient = f / denominator.hi;
  const Pair back = exact_product(quotient, denominator.hi);
  const double rest = ((f - back.hi) - back.lo) - quotient * denominator.lo;
  const Pair s = fast_sum(quotient, rest / denominator.hi);
  const Pair z = s * s;

  double tail = 1.0 / 27;
  tail = tail * z.hi + 1.0 / 25;
  tail = tail * z.hi + 1.0 / 23;
  const double z2 = z.hi * z.hi;
  const double z4 = z2 * z2;
  const double cube = atanh_tail_from_cube(z.hi) + z4 * z4 * tail;

  constexpr Pair kThird{0x1.5555555555555p-2, 0x1.5555555555555p-56};
  constexpr Pair kFifth{0x1.999999999999ap-3, -0x1.999999999999ap-57};
  const Pair series = z * (kThird + z * (kFifth + Pair{z.hi * cube, 0.0}));
  const Pair twice{2.0 * s.hi, 2.0 * s.lo};
  const Pair log_mantissa = twice + twice * series;

  const double e = parts.exponent;
  if (parts.exponent == 0) return log_mantissa;
  return fast_sum(e * kLn2Hi, e * kLn2Lo) + log_mantissa;
}

// value * 2^exponent, exponent in -1080 .. 1025, value in (0.5, 2); one rounding, in the last step.
double scale(double value, int exponent) {
  const auto power_of_two = [](int k) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
  };
  if (exponent > 1000) return value * power_of_two(1000) * power_of_two(exponent - 1000);
  if (exponent < -1000) return value * power_of_two(-900) * power_of_two(exponent + 900);
  return value * power_of_two(exponent);
}

// exp(hi + lo) for |lo| <= ulp(hi). Reduction to |r| <= ln(2)/2, then the Taylor series to r^13,
// whose rest is below 2^-57.
double exp_pair(double hi, double lo) {
  if (hi > 709.79) return kInf;
  if (hi < -745.14) return 0.0;
  const double scaled = hi * kInvLn2;
  const int k = static_cast<int>(scaled + (scaled < 0 ? -0.5 : 0.5));
  const double k_real = k;
  const Pair r = exact_sum(hi - k_real * kLn2Hi, lo - k_real * kLn2Lo);  // the first term is exact

  double p = 1.0 / 6227020800.0;
  p = p * r.hi + 1.0 / 479001600.0;
  p = p * r.hi + 1.0 / 39916800.0;
  p = p * r.hi + 1.0 / 3628800.0;
  p = p * r.hi + 1.0 / 362880.0;
  p = p * r.hi + 1.0 / 40320.0;
  p = p * r.hi + 1.0 / 5040.0;
  p = p * r.hi + 1.0 / 720.0;
  p = p * r.hi + 1.0 / 120.0;
  p = p * r.hi + 1.0 / 24.0;
  p = p * r.hi + 1.0 / 6.0;
  const double square = r.hi * r.hi;
  // exp(r) = 1 + r + r^2/2 + r^3 p; the low part of r counts to first order: r.lo * exp(r.hi).
  const double low = r.lo + r.lo * r.hi;
  const double curve = 0.5 * square + square * r.hi * p;
  const Pair sum = fast_sum(1.0, r.hi);
  return scale(sum.hi + (sum.lo + (curve + low)), k);
}

enum class Parity { fraction, even, odd };

// y finite.
Parity parity(double y) {
  const double size = magnitude(y);
  if (size >= 0x1.0p53) return Parity::even;
  const auto whole = static_cast<std::int64_t>(size);
  if (static_cast<double>(whole) != size) return Parity::fraction;
  return (whole & 1) != 0 ? Parity::odd : Parity::even;
}

}  // namespace

double det_log(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  if ((bits & ~kSignBit) == 0) return -kInf;
  if (bits >= kInfBits) return bits == kInfBits || is_nan(x) ? x : kNan;
  const Split parts = split_binary(x);
  const double f = parts.mantissa - 1.0;  // exact
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double tail = z * (1.0 / 3 + z * (1.0 / 5 + z * atanh_tail_from_cube(z)));
  // 2s = f - f^2/2 + s f^2/2: the leading term f is exact, and the rounding errors of s weigh less.
  const double half_square = 0.5 * f * f;
  const double e = parts.exponent;
  const double small = s * (half_square + 2.0 * tail) + e * kLn2Lo;
  return e * kLn2Hi - ((half_square - small) - f);
}

double det_exp(double x) {
  if (is_nan(x)) return x;
  return exp_pair(x, 0.0);
}

double det_pow(double base, double exponent) {
  if (exponent == 0.0 || base == 1.0) return 1.0;
  if (is_nan(base) || is_nan(exponent)) return kNan;
  const double size = magnitude(base);
  if (magnitude(exponent) == kInf) {
    if (size == 1.0) return 1.0;
    return (size > 1.0) == (exponent > 0.0) ? kInf : 0.0;
  }
  const Parity whole = parity(exponent);
  const double sign = has_sign(base) && whole == Parity::odd ? -1.0 : 1.0;
  if (size == 0.0 || size == kInf) {
    return sign * ((size == 0.0) == (exponent > 0.0) ? 0.0 : kInf);
  }
  if (has_sign(base) && whole == Parity::fraction) return kNan;
  if (size == 1.0) return sign;
  const Pair log_base = log_pair(size);
  const double estimate = exponent * log_base.hi;
  if (estimate > 710.0) return sign * kInf;
  if (estimate < -746.0) return sign * 0.0;
  // Now |exponent| < 2^64, so that its split cannot overflow.
  const Pair product = exact_product(exponent, log_base.hi);
  return sign * exp_pair(product.hi, product.lo + exponent * log_base.lo);
}

}  // namespace paceline
