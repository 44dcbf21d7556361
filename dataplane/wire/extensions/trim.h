// Packet trimming, as docs/wire-protocol.md has it. A switch without room for a packet cuts off its
// payload and sends the headers on, in a class ahead of data: the receiver learns of the loss with
// the next packet instead of after a round trip (NDP, SIGCOMM'17; Ultra Ethernet 1.0).
//
// What continues is Ethernet, IP, UDP, BTH and extension headers, and the ICRC of the whole packet,
// which can no longer be checked. The DSCP says that the packet was trimmed, and in which class it
// continues; the lengths of IP and UDP stay those of the whole packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/headers/dscp.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::wire {

// One code point in each class that nothing else uses: 61 for class 7.
constexpr std::uint8_t trimmed_dscp(std::uint8_t traffic_class) {
  return static_cast<std::uint8_t>(traffic_class % kTrafficClasses * 8U + 5U);
}
static_assert(kDefaultDscpMap.traffic_class(trimmed_dscp(7)) == 7);

// Writes that DSCP. False, with nothing changed, if these are not the headers of an IP packet.
// Neither the ICRC nor a UDP checksum covers it; the checksum of an IPv4 header is updated.
bool patch_trimmed(std::span<std::byte> headers, std::uint8_t traffic_class);

// The headers of a packet that was trimmed: the checks of parse_brief; payload_bytes and pad are
// those of the whole packet. ip_length if the headers promise no payload beyond themselves.
[[nodiscard]] ParseError parse_trimmed(std::span<const std::byte> headers, ParsedPacket& out);

}  // namespace paceline::wire
