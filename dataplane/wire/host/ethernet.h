// The Ethernet header with at most one 802.1Q tag, and putting that tag in and taking it out of
// headers already written. Nothing above layer 2 covers these bytes: neither the IP checksum nor
// the ICRC changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/headers/headers.h"
#include "dataplane/wire/host/host_error.h"

namespace paceline::wire {

inline constexpr std::uint16_t kEtherTypeArp = 0x0806;
inline constexpr std::size_t kTagOffset = 12;
inline constexpr std::uint16_t kVlanIdMask = 0x0FFF;

inline constexpr MacAddress kBroadcastMac{{std::byte{0xFF}, std::byte{0xFF}, std::byte{0xFF},
                                           std::byte{0xFF}, std::byte{0xFF}, std::byte{0xFF}}};

// Priority code point (3 bits, the traffic class), drop eligible (0), VLAN identifier (12 bits);
// IEEE 802.1Q, 9.6.
constexpr std::uint16_t vlan_tci(std::uint8_t priority, std::uint16_t vlan_id) {
  return static_cast<std::uint16_t>((priority & 7U) << 13 | (vlan_id & kVlanIdMask));
}

struct EthernetHeader {
  MacAddress destination;
  MacAddress source;
  std::uint16_t ether_type = 0;  // of what follows, behind the tag
  bool has_vlan = false;
  std::uint16_t vlan_tci = 0;
  std::uint16_t l3_offset = 0;  // 14 or 18
};

// too_short or vlan_too_deep; any EtherType is accepted.
[[nodiscard]] HostError parse_ethernet(std::span<const std::byte> frame, EthernetHeader& out);

// Writes 14 bytes, 18 with a tag, and returns how many.
std::size_t store_ethernet(std::byte* out, const MacAddress& destination, const MacAddress& source,
                           std::optional<std::uint16_t> tci, std::uint16_t ether_type);

// Gives the first `bytes` of `buffer` (>= 14) this tag: rewrites an existing tag, or moves what
// follows the addresses. Returns the new length; 0, with nothing changed, if there is no room.
std::size_t set_vlan(std::span<std::byte> buffer, std::size_t bytes, std::uint16_t tci);
// Takes the tag out; returns the new length, `bytes` when there was none. bytes >= 14.
std::size_t remove_vlan(std::span<std::byte> buffer, std::size_t bytes);

}  // namespace paceline::wire
