// From bytes to a packet that can be acted upon. Two forms of input, one set of rules:
//
//   parse_frame    one contiguous Ethernet frame from a NIC or a capture, ICRC included. Bytes
//                  after the IP datagram (Ethernet padding, frame check sequence) are ignored.
//   parse_headers  the serialised headers alone, exactly as long as they are, and the length of a
//                  payload that lies elsewhere or does not exist (paceline's Packet). There is no
//                  ICRC, so none is checked.
//
// Accepted: Ethernet with at most one 802.1Q tag; IPv4 without options or IPv6 without extension
// headers; UDP to port 4791; any opcode of the table. The UDP checksum is not looked at: RoCEv2
// sends zero and relies on the invariant CRC (annex A17). Nothing outside the spans is ever read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/protocol/ecn.h"
#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/headers/headers.h"
#include "dataplane/wire/headers/opcodes.h"
#include "dataplane/wire/packet/parse_error.h"

namespace paceline::wire {

struct ParseOptions {
  bool verify_ip_checksum = true;  // off where the NIC did it, or where no bit can flip
  bool verify_icrc = true;         // parse_frame only
};

struct ParsedPacket {
  OpcodeProperties properties;
  Opcode opcode;
  std::uint8_t pad;             // bytes after the payload, before the ICRC
  std::uint32_t payload_bytes;  // without the pad
  std::uint32_t dest_qpn;
  Psn psn;
  std::uint16_t header_bytes;  // Ethernet through the last extension header: the payload's offset
  std::uint16_t l3_offset;     // of the IP header
  std::uint16_t bth_offset;
  std::uint16_t pkey;
  bool ack_request;
  bool solicited;
  bool migrated;
  bool fecn;
  bool becn;
  bool ipv6;
  Ecn ecn;
  std::uint8_t dscp;
  std::uint16_t udp_source_port;
  std::uint16_t udp_checksum;       // as received, not verified
  std::uint16_t ip_identification;  // IPv4
  bool dont_fragment;               // IPv4
  std::uint8_t ttl;                 // or hop limit
  std::uint32_t flow_label;         // IPv6
  std::uint32_t icrc;               // parse_frame: as received; parse_headers: 0
  std::uint16_t vlan_tci;           // 802.1Q priority, drop bit and identifier
  bool has_vlan;
  MacAddress source_mac;
  MacAddress destination_mac;
  IpAddress source;
  IpAddress destination;
  Extensions ext;  // zero where the opcode has none

  // Payload and pad as they lie on the wire.
  std::uint32_t padded_bytes() const { return payload_bytes + pad; }
  Bth bth() const {
    return {opcode, solicited, migrated, pad, 0, pkey, fecn, becn, dest_qpn, ack_request, psn};
  }
};

// Both return ParseError::ok and fill all of `out`, or return the reason and leave `out`
// unspecified. Neither counts: the caller owns the counters.
[[nodiscard]] ParseError parse_frame(std::span<const std::byte> frame, const ParseOptions& options,
                                     ParsedPacket& out);

// `padded_payload_bytes`: payload and pad (Packet::payload_bytes). A CNP's reserved bytes and the
// body of a control message count as headers.
[[nodiscard]] ParseError parse_headers(std::span<const std::byte> headers,
                                       std::uint32_t padded_payload_bytes,
                                       const ParseOptions& options, ParsedPacket& out);

// parse_headers for the hot path: accepts and refuses exactly the same, but leaves unspecified what
// a transport does not act upon: MAC addresses, destination, tag, identification, fragment bit,
// TTL, flow label, UDP checksum, P_Key, M and FECN bits, and the extensions that the opcode has
// not.
[[nodiscard]] ParseError parse_brief(std::span<const std::byte> headers,
                                     std::uint32_t padded_payload_bytes,
                                     const ParseOptions& options, ParsedPacket& out);

inline ParseError parse_frame(std::span<const std::byte> frame, ParsedPacket& out) {
  return parse_frame(frame, ParseOptions{}, out);
}
inline ParseError parse_headers(std::span<const std::byte> headers,
                                std::uint32_t padded_payload_bytes, ParsedPacket& out) {
  return parse_headers(headers, padded_payload_bytes, ParseOptions{}, out);
}

// The body of a control message (properties.is_control()), given the bytes that were parsed.
inline std::span<const std::byte> control_body(std::span<const std::byte> headers,
                                               const ParsedPacket& packet) {
  const std::size_t begin = std::size_t{packet.bth_offset} + kBthBytes;
  return headers.subspan(begin, packet.header_bytes - begin);
}

}  // namespace paceline::wire
