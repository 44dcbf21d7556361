// Everything about a flow's packets that does not change from one to the next, serialised once when
// the connection (or address handle) is set up: Ethernet, IP, UDP and the base transport header. A
// builder copies it and fills in lengths, checksum and the transport fields.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/base/protocol/ecn.h"
#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline::wire {

struct FlowAddressing {
  MacAddress source_mac;
  MacAddress destination_mac;
  IpAddress source;  // IPv4 when both are IPv4-mapped, else IPv6
  IpAddress destination;
  std::uint16_t udp_source_port = kFirstSourcePort;  // the path entropy
  std::uint8_t dscp = 0;                             // 0..63
  Ecn ecn = Ecn::ect0;  // data is ECN-capable; ACK, CNP and control say not_ect
  std::uint8_t ttl = 64;
  std::uint16_t pkey = kDefaultPkey;
  // IBTA vol. 1, 17.2.8: a queue pair that uses no alternate path sends "migrated".
  bool migrated = true;
  // A datagram that may not be fragmented needs no identification (RFC 6864, 4.1).
  std::uint16_t ip_identification = 0;
  bool dont_fragment = true;
  std::uint32_t flow_label = 0;           // IPv6, 20 bits
  std::optional<std::uint16_t> vlan_tci;  // 802.1Q tag, when the fabric wants one
};

struct alignas(64) HeaderTemplate {
  // Ethernet with tag (18) + IPv6 (40) + UDP (8) + BTH (12) + XRCETH (4) is the longest.
  static constexpr std::size_t kMaxBytes = 96;

  // One's complement sum of the IPv4 header without total length and checksum, in host order.
  std::uint32_t ip_sum = 0;
  std::uint8_t header_bytes = 0;  // through the base transport header, or the XRCETH behind it
  std::uint8_t l3_offset = 0;
  std::uint8_t udp_offset = 0;
  bool ipv6 = false;
  // IPv4 without a tag, the usual case, ends with the first cache line.
  static constexpr std::size_t kPlainBytes = 56;
  std::array<std::byte, kMaxBytes> bytes{};

  std::size_t bth_offset() const { return udp_offset + kUdpBytes; }
};
static_assert(sizeof(HeaderTemplate) == 128);

HeaderTemplate make_header_template(const FlowAddressing& flow);

// Sends the flow's later packets over another path.
void set_source_port(HeaderTemplate& header, std::uint16_t udp_source_port);

// Packets built from it are XRC packets, although builders are given the RC opcode. With
// `requests`, each packet has an XRCETH, whose number set_xrc_srq() sets.
void use_xrc(HeaderTemplate& header, bool requests);
void set_xrc_srq(HeaderTemplate& header, std::uint32_t number);

}  // namespace paceline::wire
