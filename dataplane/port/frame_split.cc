#include "dataplane/port/frame_split.h"

#include <algorithm>

#include "dataplane/port/packet.h"
#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/headers.h"
#include "dataplane/wire/headers/opcodes.h"

namespace paceline {

namespace {

using wire::load_be16;
using wire::load_u8;

// Where the UDP header and the end of the datagram are; false: not a datagram to RoCEv2's port.
struct Datagram {
  std::size_t udp = 0;
  std::size_t end = 0;
  std::uint8_t tos = 0;
};

bool find_datagram(std::span<const std::byte> frame, Datagram& out) {
  const std::byte* const p = frame.data();
  const std::size_t size = frame.size();
  std::size_t type_at = wire::kEthernetBytes - 2;
  if (size < wire::kEthernetBytes) return false;
  if (load_be16(p + type_at) == wire::kEtherTypeVlan) {
    type_at += wire::kVlanBytes;
    if (size < type_at + 2) return false;
  }
  const std::uint16_t type = load_be16(p + type_at);
  const std::size_t ip = type_at + 2;
  if (type == wire::kEtherTypeIpv4) {
    if (size < ip + wire::kIpv4Bytes || load_u8(p + ip) != 0x45 ||
        (load_be16(p + ip + 6) & 0x3FFFU) != 0 || load_u8(p + ip + 9) != wire::kIpProtocolUdp) {
      return false;
    }
    out.udp = ip + wire::kIpv4Bytes;
    out.end = ip + load_be16(p + ip + 2);
    out.tos = load_u8(p + ip + 1);
  } else if (type == wire::kEtherTypeIpv6) {
    if (size < ip + wire::kIpv6Bytes || load_u8(p + ip) >> 4 != 6 ||
        load_u8(p + ip + 6) != wire::kIpProtocolUdp) {
      return false;
    }
    out.udp = ip + wire::kIpv6Bytes;
    out.end = out.udp + load_be16(p + ip + 4);
    out.tos = static_cast<std::uint8_t>(load_be16(p + ip) >> 4);
  } else {
    return false;
  }
  constexpr std::size_t kLeast = wire::kUdpBytes + wire::kBthBytes + wire::kIcrcBytes;
  return out.end <= size && out.end >= out.udp + kLeast &&
         load_be16(p + out.udp + 2) == wire::kRoceUdpPort;
}

}  // namespace

FrameParts split_frame(std::span<const std::byte> frame) {
  FrameParts parts;
  Datagram datagram;
  if (!find_datagram(frame, datagram)) {
    parts.header_bytes = static_cast<std::uint16_t>(std::min(frame.size(), kMaxHeaderBytes));
    parts.payload_bytes = static_cast<std::uint32_t>(frame.size() - parts.header_bytes);
    return parts;
  }
  const std::size_t bth = datagram.udp + wire::kUdpBytes;
  const std::size_t icrc = datagram.end - wire::kIcrcBytes;
  const wire::OpcodeProperties& opcode =
      wire::properties(static_cast<wire::Opcode>(load_u8(frame.data() + bth)));
  // The body of a control message counts as headers. If the frame lacks what its opcode promises,
  // the parser reports it.
  std::size_t headers =
      opcode.is_control() ? icrc : std::min(bth + wire::kBthBytes + opcode.extension_bytes, icrc);
  headers = std::min(headers, kMaxHeaderBytes);
  parts.roce = true;
  parts.ecn = static_cast<Ecn>(datagram.tos & 3U);
  parts.dscp = static_cast<std::uint8_t>(datagram.tos >> 2);
  parts.bth_offset = static_cast<std::uint16_t>(bth);
  parts.header_bytes = static_cast<std::uint16_t>(headers);
  parts.payload_bytes = static_cast<std::uint32_t>(icrc - headers);
  parts.icrc = wire::load_le32(frame.data() + icrc);
  return parts;
}

}  // namespace paceline
