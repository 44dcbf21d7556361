// IPv4 and IPv6 headers of what a host answers itself. (RoCEv2 has its own, faster path: parse.h.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/headers/headers.h"
#include "dataplane/wire/host/host_error.h"

namespace paceline::wire {

inline constexpr std::uint8_t kIpProtocolIcmp = 1;
inline constexpr std::uint8_t kIpProtocolIcmpV6 = 58;

// RFC 1112, 4 and RFC 4291, 2.7.
inline bool is_multicast(const IpAddress& a) {
  return a.is_v4() ? a.v4_value() >> 28 == 0xE : a.bytes[0] == std::byte{0xFF};
}
// fe80::/10 (RFC 4291, 2.5.6).
inline bool is_link_local_v6(const IpAddress& a) { return a.high() >> 54 == 0x3FA; }
// An address one host can have on a network: not unspecified (nor the rest of 0/8), loopback,
// multicast, 240/4 or the limited broadcast (RFC 1122, 3.2.1.3; RFC 4291, 2.5).
bool is_host_address(const IpAddress& a);

// Do the first `bits` bits agree? 0..32 for two IPv4 addresses, 0..128 for two IPv6 ones; a longer
// prefix, or one address of each family, never matches.
bool same_prefix(const IpAddress& a, const IpAddress& b, unsigned bits);

struct IpHeader {
  bool ipv6 = false;
  std::uint8_t protocol = 0;  // or next header
  std::uint8_t tos = 0;       // DSCP and ECN
  std::uint8_t ttl = 0;       // or hop limit
  IpAddress source;
  IpAddress destination;
  std::size_t header_bytes = 0;    // 20 or 40
  std::size_t datagram_bytes = 0;  // with the header; what follows is padding
};

// `ip` starts at the IP header; `elsewhere` more bytes follow it in another buffer. Accepts no
// options, no fragments, no extension headers, and only sources that can be answered; the IPv6
// unspecified address passes, since neighbour discovery uses it.
[[nodiscard]] HostError parse_ip(std::span<const std::byte> ip, std::size_t elsewhere, bool ipv6,
                                 IpHeader& out);

// Both write the whole header, IPv4 with its checksum; return its length. `payload_bytes`: what
// follows the header. Don't-fragment is set (RFC 6864: then the identification means nothing).
std::size_t store_ip(std::byte* out, const IpHeader& header, std::size_t payload_bytes);

}  // namespace paceline::wire
