// Splits a received Ethernet frame into a Packet's parts: headers, payload with pad, ICRC. A NIC
// delivers contiguous bytes, and wire::parse_headers needs to know where the payload begins and the
// datagram ends.
//
// The frame is not checked further. A RoCEv2 datagram by its outer headers (Ethernet with at most
// one 802.1Q tag, IPv4 without options or IPv6, not a fragment, UDP to port 4791, an IP length that
// fits the frame) is cut as its opcode says. Malformed or not, parse_headers then has the same
// result as parse_frame on the whole frame. Everything else stays whole: it may be ARP, neighbour
// discovery or an echo, for the layer above.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "dataplane/base/protocol/ecn.h"
#include "dataplane/port/packet.h"
#include "dataplane/port/port.h"
#include "dataplane/wire/headers/dscp.h"

namespace paceline {

struct FrameParts {
  bool roce = false;
  Ecn ecn = Ecn::not_ect;           // roce only
  std::uint8_t dscp = 0;            // roce only
  std::uint16_t bth_offset = 0;     // 0 unless roce
  std::uint16_t header_bytes = 0;   // at most 128
  std::uint32_t payload_bytes = 0;  // from there on; with pad, without ICRC
  std::uint32_t icrc = 0;           // as received; 0 unless roce
};

FrameParts split_frame(std::span<const std::byte> frame);

// Fills in a received packet whose frame begins at `frame`: headers and all fields except those of
// its pool. The caller puts the payload in place.
inline void fill_received(Packet& packet, const std::byte* frame, const FrameParts& parts,
                          const WireAccounting& accounting) {
  std::memcpy(packet.header.data(), frame, parts.header_bytes);
  packet.time = Picos{0};
  packet.digest = 0;
  packet.entropy = 0;
  packet.route = 0;
  packet.ingress = 0;
  packet.header_bytes = parts.header_bytes;
  packet.payload_bytes = static_cast<std::uint16_t>(parts.payload_bytes);
  packet.payload_kind = parts.payload_bytes == 0 ? PayloadKind::none : PayloadKind::owned;
  packet.ecn = parts.ecn;
  packet.traffic_class = wire::kDefaultDscpMap.traffic_class(parts.dscp);
  packet.bth_offset = parts.bth_offset;
  packet.icrc = parts.icrc;
  packet.wire_bytes = accounting.wire_bytes(packet.frame_bytes(), packet.payload_bytes);
}

}  // namespace paceline
