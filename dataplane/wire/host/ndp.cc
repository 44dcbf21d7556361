#include "dataplane/wire/host/ndp.h"

#include <cstring>

#include "dataplane/wire/host/inet_sum.h"
#include "dataplane/wire/host/ip_header.h"

namespace paceline::wire {
namespace {

constexpr std::size_t kMessageBytes = 24;
constexpr std::size_t kLinkOptionBytes = 8;
constexpr std::uint8_t kHopLimit = 255;
constexpr std::uint8_t kSourceLinkOption = 1;
constexpr std::uint8_t kTargetLinkOption = 2;
constexpr std::uint32_t kRouter = 1U << 31;
constexpr std::uint32_t kSolicited = 1U << 30;
constexpr std::uint32_t kOverride = 1U << 29;

bool is_unspecified_v6(const IpAddress& a) { return a.high() == 0 && a.low() == 0; }

HostError parse_options(std::span<const std::byte> options, NdMessage& out) {
  const std::uint8_t wanted =
      out.kind == NdKind::solicitation ? kSourceLinkOption : kTargetLinkOption;
  out.link.reset();
  while (!options.empty()) {
    if (options.size() < 2) return HostError::nd_option;
    const std::size_t length = std::size_t{load_u8(options.data() + 1)} * 8;
    if (length == 0 || length > options.size()) return HostError::nd_option;
    if (load_u8(options.data()) == wanted) {
      if (length != kLinkOptionBytes) return HostError::nd_option;
      const MacAddress mac = MacAddress::load(options.data() + 2);
      if (mac.is_multicast() || mac == MacAddress{}) return HostError::nd_option;
      if (!out.link) out.link = mac;  // the first of several counts
    }
    options = options.subspan(length);
  }
  return HostError::ok;
}

// RFC 4861, 7.1.1 and 7.1.2: who may say this to whom.
bool addresses_fit(const NdMessage& m) {
  if (m.target.is_v4() || !is_host_address(m.target)) return false;
  if (m.kind == NdKind::advertisement) {
    return !is_unspecified_v6(m.source) && !(is_multicast(m.destination) && m.solicited);
  }
  if (!is_unspecified_v6(m.source)) return true;
  return m.destination == solicited_node_group(m.target) && !m.link;
}

}  // namespace

IpAddress solicited_node_group(const IpAddress& address) {
  IpAddress group;
  group.bytes[0] = std::byte{0xFF};
  group.bytes[1] = std::byte{0x02};
  group.bytes[11] = std::byte{0x01};
  group.bytes[12] = std::byte{0xFF};
  std::memcpy(group.bytes.data() + 13, address.bytes.data() + 13, 3);
  return group;
}

MacAddress multicast_mac(const IpAddress& group) {
  MacAddress mac;
  mac.bytes[0] = mac.bytes[1] = std::byte{0x33};
  std::memcpy(mac.bytes.data() + 2, group.bytes.data() + 12, 4);
  return mac;
}

HostError parse_nd(std::span<const std::byte> ip, NdMessage& out) {
  IpHeader header;
  if (const HostError e = parse_ip(ip, 0, true, header); e != HostError::ok) return e;
  if (header.protocol != kIpProtocolIcmpV6) return HostError::protocol;
  const auto message = ip.subspan(header.header_bytes, header.datagram_bytes - header.header_bytes);
  if (message.size() < 4) return HostError::too_short;
  const std::byte* const p = message.data();
  const std::uint8_t type = load_u8(p);
  if (type != static_cast<std::uint8_t>(NdKind::solicitation) &&
      type != static_cast<std::uint8_t>(NdKind::advertisement)) {
    return HostError::icmp_type;
  }
  if (header.ttl != kHopLimit) return HostError::nd_hop_limit;
  InetSum sum;
  sum.add_pseudo_header(header.source, header.destination,
                        static_cast<std::uint32_t>(message.size()), kIpProtocolIcmpV6);
  sum.add(message);
  if (sum.folded() != 0xFFFF) return HostError::icmp_checksum;
  if (load_u8(p + 1) != 0) return HostError::icmp_code;
  if (message.size() < kMessageBytes) return HostError::too_short;

  out.kind = static_cast<NdKind>(type);
  out.source = header.source;
  out.destination = header.destination;
  out.target = IpAddress::load_v6(p + 8);
  const std::uint32_t flags = out.kind == NdKind::advertisement ? load_be32(p + 4) : 0;
  out.router = (flags & kRouter) != 0;
  out.solicited = (flags & kSolicited) != 0;
  out.overrides = (flags & kOverride) != 0;
  if (const HostError e = parse_options(message.subspan(kMessageBytes), out); e != HostError::ok) {
    return e;
  }
  return addresses_fit(out) ? HostError::ok : HostError::nd_address;
}

std::size_t store_nd(std::byte* out, const NdMessage& message) {
  const std::size_t bytes = kMessageBytes + (message.link ? kLinkOptionBytes : 0);
  IpHeader header;
  header.ipv6 = true;
  header.protocol = kIpProtocolIcmpV6;
  header.ttl = kHopLimit;
  header.source = message.source;
  header.destination = message.destination;
  std::byte* const p = out + store_ip(out, header, bytes);
  store_u8(p, static_cast<std::uint8_t>(message.kind));
  store_u8(p + 1, 0);
  store_be16(p + 2, 0);
  const bool advertises = message.kind == NdKind::advertisement;
  store_be32(p + 4, !advertises
                        ? 0
                        : (message.router ? kRouter : 0) | (message.solicited ? kSolicited : 0) |
                              (message.overrides ? kOverride : 0));
  std::memcpy(p + 8, message.target.bytes.data(), 16);
  if (message.link) {
    store_u8(p + kMessageBytes, advertises ? kTargetLinkOption : kSourceLinkOption);
    store_u8(p + kMessageBytes + 1, 1);
    std::memcpy(p + kMessageBytes + 2, message.link->bytes.data(), 6);
  }
  InetSum sum;
  sum.add_pseudo_header(message.source, message.destination, static_cast<std::uint32_t>(bytes),
                        kIpProtocolIcmpV6);
  sum.add({p, bytes});
  store_be16(p + 2, sum.checksum());
  return kIpv6Bytes + bytes;
}

}  // namespace paceline::wire
