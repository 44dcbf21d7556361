// Units of time and rate. Integer picoseconds in fabric, pacing and driver; nanoseconds at the
// congestion-control border. Everything is constexpr, trivially copyable and free of undefined
// overflow for the ranges stated.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace paceline {

// A signed 64-bit count of one time unit. Picos covers +-106 days, Nanos +-292 years.
template <class Tag>
struct TimeCount {
  std::int64_t count = 0;

  friend constexpr auto operator<=>(TimeCount, TimeCount) = default;
  friend constexpr TimeCount operator+(TimeCount a, TimeCount b) { return {a.count + b.count}; }
  friend constexpr TimeCount operator-(TimeCount a, TimeCount b) { return {a.count - b.count}; }
  friend constexpr TimeCount operator*(TimeCount a, std::int64_t k) { return {a.count * k}; }
  friend constexpr TimeCount operator/(TimeCount a, std::int64_t k) { return {a.count / k}; }
  constexpr TimeCount& operator+=(TimeCount b) {
    count += b.count;
    return *this;
  }
  constexpr TimeCount& operator-=(TimeCount b) {
    count -= b.count;
    return *this;
  }
};

using Picos = TimeCount<struct PicosTag>;
using Nanos = TimeCount<struct NanosTag>;

// "Never": a deadline that does not exist. Do not add to it; use saturating_add.
inline constexpr Picos kNever{std::numeric_limits<std::int64_t>::max()};
inline constexpr Nanos kNeverNanos{std::numeric_limits<std::int64_t>::max()};

constexpr Picos picos_from_nanos(std::int64_t ns) { return {ns * 1000}; }
constexpr Picos picos_from_micros(std::int64_t us) { return {us * 1'000'000}; }

// Into the congestion-control border: rounds down, so no algorithm ever sees the future.
constexpr Nanos to_nanos(Picos t) { return t == kNever ? kNeverNanos : Nanos{t.count / 1000}; }

// Out of the border: a deadline; saturates, never wraps.
constexpr Picos to_picos(Nanos t) {
  return t.count > kNever.count / 1000 ? kNever : Picos{t.count * 1000};
}

constexpr Picos saturating_add(Picos a, Picos b) {
  if (b.count > 0 && a.count > kNever.count - b.count) return kNever;
  return a + b;
}

constexpr Picos earlier(Picos a, Picos b) { return a < b ? a : b; }
constexpr Picos later(Picos a, Picos b) { return a < b ? b : a; }

// Bits per second. Range 0 .. 18.4 Eb/s; rates of interest are 1 Mb/s .. 3.2 Tb/s.
struct Rate {
  std::uint64_t bps = 0;
  friend constexpr auto operator<=>(Rate, Rate) = default;
};

constexpr Rate rate_from_mbps(std::uint64_t mbps) { return {mbps * 1'000'000}; }
constexpr Rate rate_from_gbps(std::uint64_t gbps) { return {gbps * 1'000'000'000}; }
constexpr Rate min_rate(Rate a, Rate b) { return a < b ? a : b; }
constexpr Rate max_rate(Rate a, Rate b) { return a < b ? b : a; }

// Time to serialise `bytes` at `rate`, rounded down to a whole picosecond (25, 40, 100, 200, 400
// and 800 Gb/s are exact). rate must not be 0. Exact for any byte count (128-bit inside).
constexpr Picos serialization_time(std::uint64_t bytes, Rate rate) {
  constexpr std::uint64_t kPicosBitsPerByte = 8'000'000'000'000;
  if (bytes <= 1'000'000) {
    return {static_cast<std::int64_t>(bytes * kPicosBitsPerByte / rate.bps)};
  }
  __extension__ using Wide = unsigned __int128;
  return {static_cast<std::int64_t>(Wide{bytes} * kPicosBitsPerByte / rate.bps)};
}

// Bytes that fit into `span` at `rate`, rounded down; 0 for a negative span.
constexpr std::uint64_t bytes_in(Picos span, Rate rate) {
  if (span.count <= 0) return 0;
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide(span.count) * rate.bps / 8'000'000'000'000U);
}

constexpr std::uint64_t bytes_in(Nanos span, Rate rate) { return bytes_in(to_picos(span), rate); }

// Traffic classes: 8, one table maps DSCP -> class -> PFC priority -> queue (class = priority).
// Control (ACK, NAK, CNP, GRANT, ...) rides in the top class.
inline constexpr unsigned kTrafficClasses = 8;
inline constexpr std::uint8_t kControlClass = 7;
inline constexpr std::uint8_t kDefaultDataClass = 3;

}  // namespace paceline
