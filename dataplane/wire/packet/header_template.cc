#include "dataplane/wire/packet/header_template.h"

#include <cassert>
#include <cstring>

#include "dataplane/wire/bytes/checksum.h"

namespace paceline::wire {
namespace {

void store_ipv4(std::byte* p, const FlowAddressing& flow) {
  const unsigned tos = static_cast<unsigned>(flow.dscp << 2) | static_cast<unsigned>(flow.ecn);
  store_u8(p, 0x45);
  store_u8(p + 1, static_cast<std::uint8_t>(tos));
  store_be16(p + 4, flow.ip_identification);
  store_be16(p + 6, flow.dont_fragment ? 0x4000 : 0);
  store_u8(p + 8, flow.ttl);
  store_u8(p + 9, kIpProtocolUdp);
  store_be32(p + 12, flow.source.v4_value());
  store_be32(p + 16, flow.destination.v4_value());
}

void store_ipv6(std::byte* p, const FlowAddressing& flow) {
  const std::uint32_t traffic_class =
      static_cast<std::uint32_t>(flow.dscp) << 2 | static_cast<std::uint32_t>(flow.ecn);
  store_be32(p, 6U << 28 | traffic_class << 20 | (flow.flow_label & 0xF'FFFFU));
  store_u8(p + 6, kIpProtocolUdp);
  store_u8(p + 7, flow.ttl);
  std::memcpy(p + 8, flow.source.bytes.data(), 16);
  std::memcpy(p + 24, flow.destination.bytes.data(), 16);
}

}  // namespace

HeaderTemplate make_header_template(const FlowAddressing& flow) {
  assert(flow.dscp < 64 && flow.flow_label <= 0xF'FFFF);
  HeaderTemplate t;
  std::byte* p = t.bytes.data();
  std::memcpy(p, flow.destination_mac.bytes.data(), 6);
  std::memcpy(p + 6, flow.source_mac.bytes.data(), 6);
  p += 12;
  if (flow.vlan_tci) {
    store_be16(p, kEtherTypeVlan);
    store_be16(p + 2, *flow.vlan_tci);
    p += kVlanBytes;
  }
  t.ipv6 = !(flow.source.is_v4() && flow.destination.is_v4());
  store_be16(p, t.ipv6 ? kEtherTypeIpv6 : kEtherTypeIpv4);
  p += 2;
  t.l3_offset = static_cast<std::uint8_t>(p - t.bytes.data());
  if (t.ipv6) {
    store_ipv6(p, flow);
    p += kIpv6Bytes;
  } else {
    store_ipv4(p, flow);
    t.ip_sum = ipv4_header_sum(p);
    p += kIpv4Bytes;
  }
  t.udp_offset = static_cast<std::uint8_t>(p - t.bytes.data());
  store_be16(p, flow.udp_source_port);
  store_be16(p + 2, kRoceUdpPort);
  p += kUdpBytes;
  store_u8(p + 1, flow.migrated ? 0x40 : 0);
  store_be16(p + 2, flow.pkey);
  p += kBthBytes;
  t.header_bytes = static_cast<std::uint8_t>(p - t.bytes.data());
  return t;
}

void set_source_port(HeaderTemplate& header, std::uint16_t udp_source_port) {
  store_be16(header.bytes.data() + header.udp_offset, udp_source_port);
}

void use_xrc(HeaderTemplate& header, bool requests) {
  store_u8(header.bytes.data() + header.bth_offset(), kXrcBits);
  if (requests) header.header_bytes += kXrcEthBytes;
}

void set_xrc_srq(HeaderTemplate& header, std::uint32_t number) {
  assert(number <= 0xFF'FFFF &&
         header.header_bytes == header.bth_offset() + kBthBytes + kXrcEthBytes);
  store_be32(header.bytes.data() + header.bth_offset() + kBthBytes, number);
}

}  // namespace paceline::wire
