// Random but valid packets for the tests of this room.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"

namespace paceline::wire::test {

using Buffer = std::array<std::byte, kHeaderBufferBytes>;

inline FlowAddressing plain_flow() {
  FlowAddressing flow;
  flow.source_mac = MacAddress::local(1);
  flow.destination_mac = MacAddress::local(2);
  flow.source = IpAddress::v4(0x0A000001);
  flow.destination = IpAddress::v4(0x0A000002);
  flow.dscp = 26;
  return flow;
}

inline FlowAddressing random_flow(Random& random) {
  FlowAddressing flow;
  for (auto& b : flow.source_mac.bytes) b = static_cast<std::byte>(random.next());
  for (auto& b : flow.destination_mac.bytes) b = static_cast<std::byte>(random.next());
  if (random.below(2) == 0) {
    flow.source = IpAddress::v4(static_cast<std::uint32_t>(random.next()));
    flow.destination = IpAddress::v4(static_cast<std::uint32_t>(random.next()));
    flow.ip_identification = static_cast<std::uint16_t>(random.next());
    flow.dont_fragment = random.below(2) == 0;
  } else {
    for (auto& b : flow.source.bytes) b = static_cast<std::byte>(random.next());
    for (auto& b : flow.destination.bytes) b = static_cast<std::byte>(random.next());
    flow.source.bytes[0] = flow.destination.bytes[0] = std::byte{0xFD};
    flow.flow_label = static_cast<std::uint32_t>(random.below(1U << 20));
  }
  flow.udp_source_port = static_cast<std::uint16_t>(random.next());
  flow.dscp = static_cast<std::uint8_t>(random.below(64));
  flow.ecn = static_cast<Ecn>(random.below(4));
  flow.ttl = static_cast<std::uint8_t>(random.next());
  flow.pkey = static_cast<std::uint16_t>(random.next());
  flow.migrated = random.below(2) == 0;
  if (random.below(3) == 0) flow.vlan_tci = static_cast<std::uint16_t>(random.next());
  return flow;
}

inline Extensions random_extensions(Random& random, const OpcodeProperties& row) {
  const auto word = [&random] { return static_cast<std::uint32_t>(random.next()); };
  Extensions ext;
  if (row.has_xrc_eth()) ext.xrc_srq = word() & 0xFF'FFFF;
  if (row.has_reth()) ext.reth = {random.next(), word(), word()};
  if (row.has_aeth()) ext.aeth = Aeth::ack(word(), static_cast<std::uint8_t>(random.below(32)));
  if (row.operation == Operation::acknowledge) {
    if (random.below(3) == 0) {
      ext.aeth = Aeth::rnr_nak(word(), static_cast<std::uint8_t>(random.below(32)));
    } else if (random.below(2) == 0) {
      ext.aeth = Aeth::nak(word(), static_cast<NakCode>(random.below(kNakCodes)));
    }
  }
  if (row.has_immediate()) ext.immediate = word();
  if (row.has_ieth()) ext.invalidate_rkey = word();
  if (row.has_atomic_eth()) ext.atomic = {random.next(), word(), random.next(), random.next()};
  if (row.has_atomic_ack_eth()) ext.atomic_original = random.next();
  if (row.has_deth()) ext.deth = {word(), word() & 0xFF'FFFFU};
  return ext;
}

// Header, zero payload and pad, ICRC: what a NIC would receive.
inline std::vector<std::byte> frame_of(std::span<const std::byte> headers, std::size_t l3_offset,
                                       std::size_t padded_payload = 0) {
  std::vector<std::byte> frame(headers.size() + padded_payload + kIcrcBytes);
  std::copy(headers.begin(), headers.end(), frame.begin());
  const std::size_t end = frame.size() - kIcrcBytes;
  store_le32(frame.data() + end, icrc_of_frame(frame, l3_offset, end));
  return frame;
}

}  // namespace paceline::wire::test
