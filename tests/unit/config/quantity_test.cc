#include "dataplane/config/toml/quantity.h"

#include <catch2/catch.hpp>

#include "dataplane/base/numbers/random.h"

namespace paceline::config {
namespace {

TEST_CASE("times are read exactly", "[config]") {
  CHECK(parse_time("1us").value == picos_from_micros(1));
  CHECK(parse_time("20 us").value == picos_from_micros(20));
  CHECK(parse_time(" 0.5ns ").value == Picos{500});
  CHECK(parse_time("1.5s").value == Picos{1'500'000'000'000});
  CHECK(parse_time("0.001ms").value == picos_from_micros(1));
  CHECK(parse_time("1e3ns").value == picos_from_micros(1));
  CHECK(parse_time("0s").value == Picos{0});
  CHECK(parse_time("\xC2\xB5s").ok() == false);
  CHECK(parse_time("3\xC2\xB5s").value == picos_from_micros(3));
  // A double would give 0.1 + 0.2 style dust here.
  CHECK(parse_time("2.000000000001s").value == Picos{2'000'000'000'001});
  CHECK(parse_time("9223372.036854775806s").value == Picos{kNever.count - 1});
}

TEST_CASE("rates are read exactly", "[config]") {
  for (const char* text :
       {"100Gb/s", "100Gbps", "100 Gbit/s", "0.1Tb/s", "100000Mb/s", "100000000kbps"}) {
    INFO(text);
    CHECK(parse_rate(text).value == rate_from_gbps(100));
  }
  CHECK(parse_rate("1b/s").value == Rate{1});
}

TEST_CASE("sizes know decimal and binary prefixes", "[config]") {
  CHECK(parse_bytes("400kB").value == 400'000);
  CHECK(parse_bytes("400KB").value == 400'000);
  CHECK(parse_bytes("400KiB").value == 409'600);
  CHECK(parse_bytes("10MB").value == 10'000'000);
  CHECK(parse_bytes("32MiB").value == 33'554'432);
  CHECK(parse_bytes("0.5kB").value == 500);
  CHECK(parse_bytes("7 B").value == 7);
}

TEST_CASE("what is no quantity is refused with the units that are", "[config]") {
  CHECK(parse_time("5 parsecs").error ==
        "\"parsecs\" is not one of its units; expected a time such as \"1us\" (units ps, ns, us, "
        "ms or s)");
  CHECK(parse_time("5").error ==
        "it has no unit; expected a time such as \"1us\" (units ps, ns, us, ms or s)");
  CHECK(parse_rate("-100Gb/s").error ==
        "it must not be negative; expected a rate such as \"100Gb/s\" (units b/s, kb/s, Mb/s, Gb/s "
        "or "
        "Tb/s)");
  CHECK(parse_bytes("0.5B").error ==
        "it is not a whole number of bytes; expected a size such as \"400kB\" (units B, kB, MB, "
        "GB, TB, "
        "KiB, MiB, GiB or TiB)");
  for (const char* text : {"", "us", "nan us", "inf", "1..2us", "1us 2us", "0x10us", "1 u s", "1US",
                           "--1us", "9223372.036854775807s", "1e30s", "1e99999999999s", "0.1ps",
                           "99999999999999999999999999999s"}) {
    INFO(text);
    CHECK_FALSE(parse_time(text).ok());
  }
  // Milli and mega differ by the case only; so do bits and bytes.
  CHECK_FALSE(parse_rate("100mb/s").ok());
  CHECK_FALSE(parse_rate("100GB/s").ok());
  CHECK_FALSE(parse_bytes("100Mb").ok());
  CHECK_FALSE(parse_rate("18446744073709551616b/s").ok());
}

TEST_CASE("decimals scale without rounding", "[config]") {
  CHECK(parse_decimal("2", 12).value == 2'000'000'000'000);
  CHECK(parse_decimal("0.000001234567", 12).value == 1'234'567);
  CHECK(parse_decimal("2e-05", 12).value == 20'000'000);
  CHECK(parse_decimal("0.0000000", 12).value == 0);
  CHECK(parse_decimal("1.10000000000000000000000", 3).value == 1100);
  CHECK_FALSE(parse_decimal("0.0000000000001", 12).ok());
  CHECK_FALSE(parse_decimal("1s", 12).ok());
  CHECK_FALSE(parse_decimal("", 12).ok());
  CHECK_FALSE(parse_decimal("nan", 12).ok());
}

TEST_CASE("a parameter takes numbers and quantities of its unit", "[config]") {
  CHECK(parse_in_unit("55", "us").value == 55.0);
  CHECK(parse_in_unit("0.055ms", "us").value == 55.0);
  CHECK(parse_in_unit("40Mb/s", "Mb/s").value == 40.0);
  CHECK(parse_in_unit("0.1Gb/s", "Mb/s").value == 100.0);
  CHECK(parse_in_unit("10MB", "bytes").value == 10e6);
  CHECK_FALSE(parse_in_unit("10MB", "us").ok());
  CHECK_FALSE(parse_in_unit("10us", "1").ok());
  CHECK_FALSE(parse_in_unit("nan", "us").ok());
}

TEST_CASE("what is written reads back", "[config]") {
  CHECK(format_time(picos_from_micros(20)) == "20us");
  CHECK(format_rate(rate_from_gbps(100)) == "100Gb/s");
  CHECK(format_bytes(33'554'432) == "32MiB");
  CHECK(format_bytes(400'000) == "400kB");
  CHECK(format_bytes(0) == "0B");
  constexpr std::uint64_t kSeed = 20;
  INFO("seed " << kSeed);
  Random random(kSeed);
  for (int i = 0; i < 2000; ++i) {
    const auto shift = static_cast<unsigned>(random.below(62) + 1);
    const std::uint64_t value = random.next() >> shift;
    CHECK(parse_bytes(format_bytes(value)).value == value);
    CHECK(parse_rate(format_rate({value})).value.bps == value);
    const Picos t{static_cast<std::int64_t>(value)};
    if (t != kNever) CHECK(parse_time(format_time(t)).value == t);
  }
}

}  // namespace
}  // namespace paceline::config
