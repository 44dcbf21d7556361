// Quantities as people write them: "100Gb/s", "20 us", "32MiB", "0.5". Exact: the decimal digits
// are scaled in integers, never through a double, and a value that is not a whole number of the
// base unit (ps, b/s, byte) is an error. k, M, G, T are powers of 1000; Ki, Mi, Gi, Ti powers of
// 1024.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/base/units.h"

namespace paceline::config {

// A value, or an error that says what was expected.
template <class T>
struct Parsed {
  T value{};
  std::string error;
  bool ok() const { return error.empty(); }
};

// ps, ns, us (or a micro sign), ms, s. Less than kNever (about 106 days).
Parsed<Picos> parse_time(std::string_view text);

// b/s, kb/s, Mb/s, Gb/s, Tb/s; also bit/s and bps spellings.
Parsed<Rate> parse_rate(std::string_view text);

// B, kB (KB), MB, GB, TB, KiB, MiB, GiB, TiB. Less than 2^63.
Parsed<std::uint64_t> parse_bytes(std::string_view text);

// A plain decimal ("0.05", "1e-6") times 10^power as an exact integer, 0 <= result < 2^63.
// parse_decimal("2.000000001", 12) is a time in seconds as picoseconds.
Parsed<std::int64_t> parse_decimal(std::string_view text, int power);

// A number in `unit` (the unit of a ParamSpec: "us", "Mb/s", "bytes", "1"): a plain number, or a
// quantity of the same kind, converted.
Parsed<double> parse_in_unit(std::string_view text, std::string_view unit);

// The range of a link's rate, for all keys; bits per second.
inline constexpr double kLeastRate = 1e6;
inline constexpr double kMostRate = 3.2e12;

// The shortest exact text that the parsers above read back.
std::string format_time(Picos t);
std::string format_rate(Rate r);
std::string format_bytes(std::uint64_t bytes);

// "ps, ns, us, ms or s", for messages.
std::string_view time_units();
std::string_view rate_units();
std::string_view byte_units();

}  // namespace paceline::config
