// Addresses on the wire. Every IP address is 128 bits; an IPv4 address is held in its mapped form
// ::ffff:a.b.c.d, which is also how RoCEv2 GIDs name IPv4 ports (IBTA vol. 1, annex A17.4.1).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/wire/bytes/endian.h"

namespace paceline::wire {

struct IpAddress {
  std::array<std::byte, 16> bytes{};  // network order

  // From an IPv4 address as a number: 10.0.0.1 = 0x0A000001.
  static IpAddress v4(std::uint32_t value) {
    IpAddress a;
    a.bytes[10] = a.bytes[11] = std::byte{0xFF};
    store_be32(a.bytes.data() + 12, value);
    return a;
  }
  static IpAddress load_v4(const std::byte* p) {
    // Two whole words: a caller that compares the address right away reads it in the same two.
    IpAddress a;
    store_be64(a.bytes.data(), 0);
    store_be64(a.bytes.data() + 8, std::uint64_t{0xFFFF} << 32 | load_be32(p));
    return a;
  }
  static IpAddress load_v6(const std::byte* p) {
    IpAddress a;
    std::memcpy(a.bytes.data(), p, 16);
    return a;
  }

  bool is_v4() const { return high() == 0 && load_be32(bytes.data() + 8) == 0xFFFF; }
  // Only for is_v4().
  std::uint32_t v4_value() const { return load_be32(bytes.data() + 12); }
  bool is_unspecified() const { return high() == 0 && (low() == 0 || low() == 0xFFFF'0000'0000); }

  std::uint64_t high() const { return load_be64(bytes.data()); }
  std::uint64_t low() const { return load_be64(bytes.data() + 8); }

  friend bool operator==(const IpAddress& a, const IpAddress& b) {
    return load_raw<std::uint64_t>(a.bytes.data()) == load_raw<std::uint64_t>(b.bytes.data()) &&
           load_raw<std::uint64_t>(a.bytes.data() + 8) ==
               load_raw<std::uint64_t>(b.bytes.data() + 8);
  }
  // Numeric order, so that sorted tables read naturally.
  friend std::strong_ordering operator<=>(const IpAddress& a, const IpAddress& b) {
    const auto first = a.high() <=> b.high();
    return first != 0 ? first : a.low() <=> b.low();
  }
};
static_assert(sizeof(IpAddress) == 16);

// Of emulated devices whose ports have an address each: the ports' subnets differ in the 16 bits
// above the last 16, which name the device.
inline std::uint16_t subnet_of(const IpAddress& address) {
  return load_be16(address.bytes.data() + 12);
}
inline IpAddress in_subnet(IpAddress address, std::uint16_t subnet) {
  store_be16(address.bytes.data() + 12, subnet);
  return address;
}

// A RoCEv2 GID is the IP address of the port.
using Gid = IpAddress;

struct MacAddress {
  std::array<std::byte, 6> bytes{};  // network order

  static MacAddress load(const std::byte* p) {
    MacAddress m;
    std::memcpy(m.bytes.data(), p, 6);
    return m;
  }
  // A locally administered unicast address 02:00:xx:xx:xx:xx that carries `number`: emulated hosts.
  static MacAddress local(std::uint32_t number) {
    MacAddress m;
    m.bytes[0] = std::byte{0x02};
    store_be32(m.bytes.data() + 2, number);
    return m;
  }
  bool is_multicast() const { return (bytes[0] & std::byte{1}) != std::byte{0}; }

  friend auto operator<=>(const MacAddress&, const MacAddress&) = default;
};
static_assert(sizeof(MacAddress) == 6);

// A 64-bit mix with no input bit left out: the same on every machine, so a table keyed by it is
// laid out alike everywhere. Not meant to resist chosen keys.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93U;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93U;
  return x ^ (x >> 32);
}
inline std::uint64_t hash_value(const IpAddress& a) { return mix64(mix64(a.high()) ^ a.low()); }

struct IpAddressHash {
  std::size_t operator()(const IpAddress& a) const { return hash_value(a); }
};

// The fields of a RoCEv2 packet that ECMP hashes, in 32 bits; the others are constant (protocol 17,
// destination port 4791).
inline std::uint32_t path_entropy(const IpAddress& source, const IpAddress& destination,
                                  std::uint16_t udp_source_port) {
  const std::uint64_t h =
      mix64(hash_value(source) + 0x9E3779B97F4A7C15U * hash_value(destination) + udp_source_port);
  return static_cast<std::uint32_t>(h >> 32);
}

// Text. Readers accept the whole of `text` or nothing; on failure they return nothing and, when
// `error` is given, say what was found and what is allowed. Called at configuration time only.
// IPv4 dotted quad (no leading zeros), IPv6 as in RFC 4291 2.2, all three forms.
std::optional<IpAddress> ip_address_from_text(std::string_view text, std::string* error = nullptr);
// Six pairs of hex digits with colons between.
std::optional<MacAddress> mac_address_from_text(std::string_view text,
                                                std::string* error = nullptr);

std::string to_text(const IpAddress& address);   // dotted quad when IPv4, else RFC 5952
std::string to_text(const MacAddress& address);  // "02:00:0a:00:00:01"

}  // namespace paceline::wire
