// Neighbour solicitation and advertisement (RFC 4861, 4.3 and 4.4) in their IPv6 packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/host/host_error.h"

namespace paceline::wire {

enum class NdKind : std::uint8_t { solicitation = 135, advertisement = 136 };  // ICMPv6 types

struct NdMessage {
  NdKind kind = NdKind::solicitation;
  IpAddress source;  // unspecified in the solicitation of duplicate address detection (RFC 4862)
  IpAddress destination;
  IpAddress target;
  // Advertisement flags R, S and O.
  bool router = false;
  bool solicited = false;
  bool overrides = false;
  // A solicitation's source link-layer address option; an advertisement's target option.
  std::optional<MacAddress> link;
  friend bool operator==(const NdMessage&, const NdMessage&) = default;
};

// IPv6 header, message and one link-layer address option.
inline constexpr std::size_t kNdMaxBytes = 40 + 24 + 8;

// ff02::1:ffXX:XXXX (RFC 4291, 2.7.1).
IpAddress solicited_node_group(const IpAddress& address);
inline IpAddress all_nodes_group() {
  IpAddress a;
  a.bytes[0] = std::byte{0xFF};
  a.bytes[1] = std::byte{0x02};
  a.bytes[15] = std::byte{0x01};
  return a;
}
// 33:33 and the last four bytes (RFC 2464, 7).
MacAddress multicast_mac(const IpAddress& group);

// `ip` starts at the IPv6 header of an ICMPv6 packet and holds the whole packet (padding may
// follow). Everything that RFC 4861, 7.1.1 and 7.1.2 require is checked. Options other than the
// link-layer address are skipped, as they must be. Other ICMPv6 types return icmp_type.
[[nodiscard]] HostError parse_nd(std::span<const std::byte> ip, NdMessage& out);

// Writes IPv6 header, message and option; returns the length, at most kNdMaxBytes.
std::size_t store_nd(std::byte* out, const NdMessage& message);

}  // namespace paceline::wire
