#include "dataplane/wire/extensions/trim.h"

#include "dataplane/wire/bytes/checksum.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline::wire {
namespace {

struct IpAt {
  std::size_t offset = 0;  // 0: no IP packet
  bool ipv6 = false;
};

// Finds the IP header, which must be whole.
IpAt find_ip(std::span<const std::byte> headers) {
  const std::byte* const p = headers.data();
  std::size_t offset = kEthernetBytes;
  if (headers.size() < offset + kIpv4Bytes) return {};
  std::uint16_t type = load_be16(p + 12);
  if (type == kEtherTypeVlan) {
    type = load_be16(p + 16);
    offset += kVlanBytes;
  }
  if (type == kEtherTypeIpv4 && headers.size() >= offset + kIpv4Bytes &&
      load_u8(p + offset) == 0x45) {
    return {offset, false};
  }
  if (type == kEtherTypeIpv6 && headers.size() >= offset + kIpv6Bytes &&
      load_u8(p + offset) >> 4 == 6) {
    return {offset, true};
  }
  return {};
}

}  // namespace

bool patch_trimmed(std::span<std::byte> headers, std::uint8_t traffic_class) {
  const IpAt at = find_ip(headers);
  if (at.offset == 0) return false;
  std::byte* const ip = headers.data() + at.offset;
  const std::uint16_t before = load_be16(ip);
  const unsigned dscp = trimmed_dscp(traffic_class);
  if (at.ipv6) {
    store_be16(ip, static_cast<std::uint16_t>((before & ~0x0FC0U) | dscp << 6));
    return true;
  }
  const auto after = static_cast<std::uint16_t>((before & ~0x00FCU) | dscp << 2);
  store_be16(ip, after);
  store_be16(ip + 10, updated_checksum(load_be16(ip + 10), before, after));
  return true;
}

ParseError parse_trimmed(std::span<const std::byte> headers, ParsedPacket& out) {
  const IpAt at = find_ip(headers);
  if (at.offset == 0) return ParseError::not_ip;
  const std::byte* const ip = headers.data() + at.offset;
  const std::size_t end =
      at.offset + (at.ipv6 ? kIpv6Bytes + load_be16(ip + 4) : std::size_t{load_be16(ip + 2)});
  if (end <= headers.size() + kIcrcBytes) return ParseError::ip_length;
  const auto payload = static_cast<std::uint32_t>(end - headers.size() - kIcrcBytes);
  return parse_brief(headers, payload, {}, out);
}

}  // namespace paceline::wire
