#include "dataplane/wire/headers/addresses.h"

#include <catch2/catch.hpp>
#include <set>

#include "dataplane/base/numbers/random.h"

namespace paceline::wire {
namespace {

std::string error_of_ip(std::string_view text) {
  std::string error;
  REQUIRE_FALSE(ip_address_from_text(text, &error));
  return error;
}

std::string error_of_mac(std::string_view text) {
  std::string error;
  REQUIRE_FALSE(mac_address_from_text(text, &error));
  return error;
}

}  // namespace

TEST_CASE("address: IPv4 is held in mapped form") {
  const IpAddress a = IpAddress::v4(0x0A4D0001);
  CHECK(a.is_v4());
  CHECK(a.v4_value() == 0x0A4D0001);
  CHECK(to_text(a) == "10.77.0.1");
  CHECK(a.high() == 0);
  CHECK(a.low() == 0x0000'FFFF'0A4D'0001);
  CHECK(ip_address_from_text("10.77.0.1") == a);
  CHECK(ip_address_from_text("::ffff:10.77.0.1") == a);
  CHECK(ip_address_from_text("::ffff:a4d:1") == a);
  CHECK_FALSE(ip_address_from_text("::10.77.0.1")->is_v4());
  CHECK(IpAddress{}.is_unspecified());
  CHECK(IpAddress::v4(0).is_unspecified());
  CHECK_FALSE(a.is_unspecified());
}

TEST_CASE("address: IPv6 text as in RFC 4291 2.2, written as in RFC 5952") {
  const std::pair<const char*, const char*> cases[] = {
      {"2001:db8::8:800:200C:417A", "2001:db8::8:800:200c:417a"},
      {"2001:DB8:0:0:8:800:200C:417A", "2001:db8::8:800:200c:417a"},
      {"FF01:0:0:0:0:0:0:101", "ff01::101"},
      {"0:0:0:0:0:0:0:1", "::1"},
      {"::", "::"},
      {"fe80::", "fe80::"},
      {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
      {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
      {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
  };
  for (const auto& [in, out] : cases) {
    std::string error;
    const auto a = ip_address_from_text(in, &error);
    INFO(in << " " << error);
    REQUIRE(a);
    CHECK(to_text(*a) == out);
  }
}

TEST_CASE("address: any address survives being written and read") {
  const std::uint64_t seed = 99;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 2000; ++i) {
    IpAddress a;
    for (auto& b : a.bytes) {
      // Many zeros, so that every placing of "::" occurs.
      b = random.below(3) == 0 ? static_cast<std::byte>(random.next()) : std::byte{0};
    }
    if (random.below(4) == 0) a = IpAddress::v4(static_cast<std::uint32_t>(random.next()));
    INFO(to_text(a));
    REQUIRE(ip_address_from_text(to_text(a)) == a);
    MacAddress m;
    for (auto& b : m.bytes) b = static_cast<std::byte>(random.next());
    REQUIRE(mac_address_from_text(to_text(m)) == m);
  }
}

TEST_CASE("address: errors name the text, the part and what is allowed") {
  CHECK(error_of_ip("10.0.0.256") ==
        "IP address '10.0.0.256': part 4 is '256'; expected a number 0..255");
  CHECK(error_of_ip("10.0.0") ==
        "IP address '10.0.0': has 3 parts; an IPv4 address has 4, as in 10.0.0.1");
  CHECK(error_of_ip("10.01.0.1") ==
        "IP address '10.01.0.1': part 2 is '01'; leading zeros are not allowed");
  CHECK(error_of_ip("10..0.1") == "IP address '10..0.1': part 2 is ''; expected a number 0..255");
  CHECK(error_of_ip("10.0.0.99999999999").find("expected a number 0..255") != std::string::npos);
  CHECK(error_of_ip("host").find("has 1 parts") != std::string::npos);
  CHECK(error_of_ip("").find("has 1 parts") != std::string::npos);
  CHECK(error_of_ip("1::2::3") == "IP address '1::2::3': has more than one '::'");
  CHECK(error_of_ip("1:2:3").find("holds 3 groups") != std::string::npos);
  CHECK(error_of_ip("1:2:3:4:5:6:7:8:9").find("holds 9 groups") != std::string::npos);
  CHECK(error_of_ip("1:2:3:4::5:6:7:8").find("holds 8 groups") != std::string::npos);
  CHECK(error_of_ip("12345::").find("group '12345' has 5 digits") != std::string::npos);
  CHECK(error_of_ip("g::").find("group 'g'; expected 1 to 4 hexadecimal") != std::string::npos);
  CHECK(error_of_ip(":1::").find("group '' has 0 digits") != std::string::npos);
  CHECK(error_of_ip(":::").find("more than one '::'") != std::string::npos);
  CHECK(error_of_ip("::1.2.3.4:5").find("may only come last") != std::string::npos);
  CHECK(error_of_ip("1.2.3.4::").find("may only come last") != std::string::npos);
  CHECK(error_of_ip("::1.2.3.400").find("part 4 is '400'") != std::string::npos);
  CHECK(error_of_mac("02:00:00:00:00") ==
        "MAC address '02:00:00:00:00': has 5 parts; expected 6, as in 02:00:0a:00:00:01");
  CHECK(error_of_mac("02:00:00:00:00:0g") ==
        "MAC address '02:00:00:00:00:0g': part 6 is '0g'; expected two hexadecimal digits");
  CHECK(error_of_mac("02:00:00:00:00:000").find("part 6 is '000'") != std::string::npos);
  CHECK_FALSE(ip_address_from_text("x"));  // an error nobody asks for
}

TEST_CASE("address: order is numeric, equality is of all bytes") {
  const auto a = *ip_address_from_text("2001:db8::1");
  const auto b = *ip_address_from_text("2001:db8::2");
  const auto c = *ip_address_from_text("2001:db9::");
  CHECK(a < b);
  CHECK(b < c);
  CHECK(IpAddress::v4(0x0A000009) < IpAddress::v4(0x0A00000A));
  CHECK(a != b);
  for (std::size_t i = 0; i < 16; ++i) {
    IpAddress changed = a;
    changed.bytes[i] ^= std::byte{1};
    CHECK(changed != a);
    CHECK(hash_value(changed) != hash_value(a));
  }
}

TEST_CASE("address: MAC of an emulated host is local, unicast and its own") {
  const MacAddress m = MacAddress::local(0x0A000001);
  CHECK(to_text(m) == "02:00:0a:00:00:01");
  CHECK_FALSE(m.is_multicast());
  CHECK(mac_address_from_text("01:00:5E:00:00:01")->is_multicast());
  CHECK(MacAddress::local(1) < MacAddress::local(2));
}

TEST_CASE("address: entropy sees both addresses, their order and the port") {
  const auto a = IpAddress::v4(0x0A000001);
  const auto b = IpAddress::v4(0x0A000002);
  std::set<std::uint32_t> seen;
  for (std::uint32_t port = 0; port < 256; ++port) {
    seen.insert(path_entropy(a, b, static_cast<std::uint16_t>(0xC000 + port)));
  }
  CHECK(seen.size() == 256);
  CHECK(path_entropy(a, b, 0xC000) != path_entropy(b, a, 0xC000));
  // The same on every machine: results files depend on it.
  CHECK(mix64(1) == 0x4179B061E0C0E0D0U);
}

}  // namespace paceline::wire
