// A received Ethernet frame as a Packet's parts: headers, payload with pad, ICRC. Where a NIC hands
// over contiguous bytes, somebody has to say where the payload begins and the datagram ends before
// wire::parse_headers can judge.
//
// This judges nothing. What is a RoCEv2 datagram by its outer headers (Ethernet with at most one
// 802.1Q tag, IPv4 without options or IPv6, not a fragment, UDP to port 4791, an IP length that the
// frame holds) is cut as its opcode says; malformed or not, parse_headers then comes to the same
// end as parse_frame on the whole frame. Everything else is left whole: it may be ARP, neighbour
// discovery or an echo, for somebody else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/ecn.h"

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

}  // namespace paceline
