#include "dataplane/config/toml/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

namespace paceline::config {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr Wide kWideMax = ~Wide{0};
constexpr std::uint64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

struct Unit {
  std::string_view name;
  std::uint64_t factor;  // base units per one of these
  bool canonical;        // used when formatting
};

constexpr std::uint64_t kK = 1'000, kM = 1'000'000, kG = 1'000'000'000, kT = 1'000'000'000'000;

// Smallest first, so that the last canonical unit that divides a value is the shortest way to
// write it.
constexpr auto kTimeUnits = std::to_array<Unit>({{"ps", 1, true},
                                                 {"ns", kK, true},
                                                 {"us", kM, true},
                                                 {"\xC2\xB5s", kM, false},
                                                 {"\xCE\xBCs", kM, false},
                                                 {"ms", kG, true},
                                                 {"s", kT, true}});
constexpr auto kRateUnits = std::to_array<Unit>({{"b/s", 1, true},
                                                 {"bps", 1, false},
                                                 {"bit/s", 1, false},
                                                 {"kb/s", kK, true},
                                                 {"Kb/s", kK, false},
                                                 {"kbps", kK, false},
                                                 {"Kbps", kK, false},
                                                 {"kbit/s", kK, false},
                                                 {"Mb/s", kM, true},
                                                 {"Mbps", kM, false},
                                                 {"Mbit/s", kM, false},
                                                 {"Gb/s", kG, true},
                                                 {"Gbps", kG, false},
                                                 {"Gbit/s", kG, false},
                                                 {"Tb/s", kT, true},
                                                 {"Tbps", kT, false},
                                                 {"Tbit/s", kT, false}});
constexpr auto kByteUnits = std::to_array<Unit>({{"B", 1, true},
                                                 {"bytes", 1, false},
                                                 {"kB", kK, true},
                                                 {"KB", kK, false},
                                                 {"KiB", 1ULL << 10, true},
                                                 {"MB", kM, true},
                                                 {"MiB", 1ULL << 20, true},
                                                 {"GB", kG, true},
                                                 {"GiB", 1ULL << 30, true},
                                                 {"TB", kT, true},
                                                 {"TiB", 1ULL << 40, true}});

struct Decimal {
  Wide mantissa = 0;
  int exponent = 0;  // value = mantissa * 10^exponent
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads [+]digits[.digits][e[+-]digits] at the front of `text` and removes it. Returns an error
// text or "".
std::string take_decimal(std::string_view& text, Decimal& out) {
  std::size_t i = 0;
  if (i < text.size() && text[i] == '-') return "it must not be negative";
  if (i < text.size() && text[i] == '+') ++i;
  bool any = false;
  bool point = false;
  int pending_zeros = 0;  // zeros held back: they matter only when another digit follows
  int significant = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!is_digit(c)) break;
    any = true;
    if (point) --out.exponent;
    if (c == '0') {
      ++pending_zeros;
      continue;
    }
    significant += out.mantissa == 0 ? 1 : pending_zeros + 1;
    if (significant > 25) return "it has too many digits";
    if (out.mantissa != 0) {
      for (int z = 0; z < pending_zeros; ++z) out.mantissa *= 10;
    }
    pending_zeros = 0;
    out.mantissa = out.mantissa * 10 + static_cast<unsigned>(c - '0');
  }
  if (!any) return "it does not start with a number";
  out.exponent += pending_zeros;
  if (out.mantissa == 0) out.exponent = 0;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t j = i + 1;
    const bool negative = j < text.size() && text[j] == '-';
    if (j < text.size() && (text[j] == '-' || text[j] == '+')) ++j;
    int value = 0;
    const std::size_t first = j;
    for (; j < text.size() && is_digit(text[j]); ++j) {
      if (value < 10'000) value = value * 10 + (text[j] - '0');
    }
    if (j > first) {  // otherwise the letter belongs to a unit, or to rubbish the caller reports
      if (out.mantissa != 0) out.exponent += negative ? -value : value;
      i = j;
    }
  }
  text.remove_prefix(i);
  return {};
}

// mantissa * 10^exponent * factor as an exact integer, 0 .. limit; or an error text.
std::string scale(Decimal d, std::uint64_t factor, std::uint64_t limit, std::uint64_t& out,
                  std::string_view base_unit) {
  out = 0;
  if (d.mantissa == 0) return {};
  // mantissa < 10^25 and factor <= 2^40: below 2^128.
  Wide value = d.mantissa * factor;
  for (; d.exponent < 0; ++d.exponent) {
    if (value % 10 != 0) return fmt::format("it is not a whole number of {}", base_unit);
    value /= 10;
  }
  for (; d.exponent > 0; --d.exponent) {
    if (value > kWideMax / 10) return "it is too large";
    value *= 10;
  }
  if (value > limit) return "it is too large";
  out = static_cast<std::uint64_t>(value);
  return {};
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

struct Family {
  std::string_view what;     // "a time"
  std::string_view example;  // "1us"
  std::string_view listing;  // "ps, ns, us, ms or s"
  std::string_view base_unit;
  std::span<const Unit> units;
  std::uint64_t limit;
};

constexpr Family kTime{"a time",      "1us",      "ps, ns, us, ms or s",
                       "picoseconds", kTimeUnits, kInt64Max - 1};
constexpr Family kRate{"a rate",          "100Gb/s",  "b/s, kb/s, Mb/s, Gb/s or Tb/s",
                       "bits per second", kRateUnits, std::numeric_limits<std::uint64_t>::max()};
constexpr Family kBytes{"a size", "400kB",    "B, kB, MB, GB, TB, KiB, MiB, GiB or TiB",
                        "bytes",  kByteUnits, kInt64Max};

const Unit* find_unit(const Family& family, std::string_view name) {
  for (const Unit& u : family.units) {
    if (u.name == name) return &u;
  }
  return nullptr;
}

Parsed<std::uint64_t> parse_family(std::string_view text, const Family& family) {
  Parsed<std::uint64_t> out;
  std::string_view rest = trim(text);
  Decimal d;
  std::string reason = take_decimal(rest, d);
  if (reason.empty()) {
    rest = trim(rest);
    const Unit* unit = find_unit(family, rest);
    if (unit != nullptr) {
      reason = scale(d, unit->factor, family.limit, out.value, family.base_unit);
    } else if (rest.empty()) {
      reason = "it has no unit";
    } else {
      reason = fmt::format("\"{}\" is not one of its units", rest);
    }
  }
  if (!reason.empty()) {
    out.error = fmt::format("{}; expected {} such as \"{}\" (units {})", reason, family.what,
                            family.example, family.listing);
  }
  return out;
}

std::string format_family(std::uint64_t value, const Family& family) {
  std::string best;
  for (const Unit& u : family.units) {
    if (!u.canonical || value % u.factor != 0) continue;
    std::string text = fmt::format("{}{}", value / u.factor, u.name);
    if (best.empty() || text.size() <= best.size()) best = std::move(text);
    if (value == 0) break;
  }
  return best;
}

}  // namespace

Parsed<Picos> parse_time(std::string_view text) {
  const auto p = parse_family(text, kTime);
  return {Picos{static_cast<std::int64_t>(p.value)}, p.error};
}

Parsed<Rate> parse_rate(std::string_view text) {
  const auto p = parse_family(text, kRate);
  return {Rate{p.value}, p.error};
}

Parsed<std::uint64_t> parse_bytes(std::string_view text) { return parse_family(text, kBytes); }

Parsed<std::int64_t> parse_decimal(std::string_view text, int power) {
  Parsed<std::int64_t> out;
  Decimal d;
  out.error = take_decimal(text, d);
  if (out.error.empty() && !text.empty()) out.error = "it is not a plain decimal number";
  if (!out.error.empty()) return out;
  std::uint64_t value = 0;
  if (d.mantissa != 0) d.exponent += power;
  out.error = scale(d, 1, kInt64Max, value, fmt::format("1e-{}", power));
  out.value = static_cast<std::int64_t>(value);
  return out;
}

Parsed<double> parse_in_unit(std::string_view text, std::string_view unit) {
  Parsed<double> out;
  const std::string_view body = trim(text);
  const auto [end, code] = std::from_chars(body.data(), body.data() + body.size(), out.value);
  if (code == std::errc{} && end == body.data() + body.size() && std::isfinite(out.value)) {
    return out;
  }
  out.value = 0;
  for (const Family* family : {&kTime, &kRate, &kBytes}) {
    const Unit* u = find_unit(*family, unit);
    if (u == nullptr) continue;
    const auto p = parse_family(body, *family);
    out.error = p.error;
    if (p.ok()) out.value = static_cast<double>(p.value) / static_cast<double>(u->factor);
    return out;
  }
  out.error = "expected a number";
  return out;
}

std::string format_time(Picos t) {
  if (t == kNever) return "never";
  if (t.count < 0) return fmt::format("{}ps", t.count);
  return format_family(static_cast<std::uint64_t>(t.count), kTime);
}
std::string format_rate(Rate r) { return format_family(r.bps, kRate); }
std::string format_bytes(std::uint64_t bytes) { return format_family(bytes, kBytes); }

std::string_view time_units() { return kTime.listing; }
std::string_view rate_units() { return kRate.listing; }
std::string_view byte_units() { return kBytes.listing; }

}  // namespace paceline::config
