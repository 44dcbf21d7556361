#include "dataplane/wire/host/ip_header.h"

#include <cstring>

#include "dataplane/wire/bytes/checksum.h"

namespace paceline::wire {

bool is_host_address(const IpAddress& a) {
  if (a.is_v4()) {
    const std::uint32_t v = a.v4_value();
    return v >> 24 != 0 && v >> 24 != 127 && v >> 28 < 0xE;
  }
  return !is_multicast(a) && !(a.high() == 0 && a.low() <= 1);
}

bool same_prefix(const IpAddress& a, const IpAddress& b, unsigned bits) {
  if (a.is_v4() != b.is_v4() || bits > (a.is_v4() ? 32U : 128U)) return false;
  if (a.is_v4()) {
    return bits == 0 || (a.v4_value() ^ b.v4_value()) >> (32 - bits) == 0;
  }
  const std::uint64_t high = a.high() ^ b.high();
  if (bits == 0) return true;
  if (bits <= 64) return high >> (64 - bits) == 0;
  return high == 0 && (a.low() ^ b.low()) >> (128 - bits) == 0;
}

namespace {

HostError parse_v4(const std::byte* p, std::size_t size, std::size_t total, IpHeader& out) {
  if (size < kIpv4Bytes) return HostError::too_short;
  const std::uint8_t version_and_length = load_u8(p);
  if (version_and_length >> 4 != 4) return HostError::ip_version;
  if (version_and_length != 0x45) {
    return (version_and_length & 15U) > 5 ? HostError::ip_options : HostError::ip_length;
  }
  if (!ipv4_checksum_ok(p)) return HostError::ip_checksum;
  out.datagram_bytes = load_be16(p + 2);
  if (out.datagram_bytes < kIpv4Bytes || out.datagram_bytes > total) return HostError::ip_length;
  if ((load_be16(p + 6) & 0x3FFFU) != 0) return HostError::fragment;
  out.tos = load_u8(p + 1);
  out.ttl = load_u8(p + 8);
  out.protocol = load_u8(p + 9);
  out.source = IpAddress::load_v4(p + 12);
  out.destination = IpAddress::load_v4(p + 16);
  out.header_bytes = kIpv4Bytes;
  return is_host_address(out.source) ? HostError::ok : HostError::ip_source;
}

HostError parse_v6(const std::byte* p, std::size_t size, std::size_t total, IpHeader& out) {
  if (size < kIpv6Bytes) return HostError::too_short;
  if (load_u8(p) >> 4 != 6) return HostError::ip_version;
  out.datagram_bytes = kIpv6Bytes + load_be16(p + 4);
  if (out.datagram_bytes > total) return HostError::ip_length;
  out.tos = static_cast<std::uint8_t>(load_be16(p) >> 4);
  out.protocol = load_u8(p + 6);
  switch (out.protocol) {
    case 0:    // hop-by-hop options
    case 43:   // routing
    case 60:   // destination options
    case 135:  // mobility
      return HostError::ip_options;
    case 44:
      return HostError::fragment;
    default:
      break;
  }
  out.ttl = load_u8(p + 7);
  out.source = IpAddress::load_v6(p + 8);
  out.destination = IpAddress::load_v6(p + 24);
  out.header_bytes = kIpv6Bytes;
  // Both families share one address type: a packet must not be able to claim the other family's.
  if (out.source.is_v4() || out.destination.is_v4()) return HostError::ip_source;
  const bool unspecified = out.source.high() == 0 && out.source.low() == 0;
  return unspecified || is_host_address(out.source) ? HostError::ok : HostError::ip_source;
}

}  // namespace

HostError parse_ip(std::span<const std::byte> ip, std::size_t elsewhere, bool ipv6, IpHeader& out) {
  out.ipv6 = ipv6;
  const std::size_t total = ip.size() + elsewhere;
  return ipv6 ? parse_v6(ip.data(), ip.size(), total, out)
              : parse_v4(ip.data(), ip.size(), total, out);
}

std::size_t store_ip(std::byte* out, const IpHeader& header, std::size_t payload_bytes) {
  if (header.ipv6) {
    store_be32(out, 6U << 28 | std::uint32_t{header.tos} << 20);
    store_be16(out + 4, static_cast<std::uint16_t>(payload_bytes));
    store_u8(out + 6, header.protocol);
    store_u8(out + 7, header.ttl);
    std::memcpy(out + 8, header.source.bytes.data(), 16);
    std::memcpy(out + 24, header.destination.bytes.data(), 16);
    return kIpv6Bytes;
  }
  store_u8(out, 0x45);
  store_u8(out + 1, header.tos);
  store_be16(out + 2, static_cast<std::uint16_t>(kIpv4Bytes + payload_bytes));
  store_be16(out + 4, 0);
  store_be16(out + 6, 0x4000);
  store_u8(out + 8, header.ttl);
  store_u8(out + 9, header.protocol);
  store_be16(out + 10, 0);
  store_be32(out + 12, header.source.v4_value());
  store_be32(out + 16, header.destination.v4_value());
  store_be16(out + 10, static_cast<std::uint16_t>(~fold_sum(ipv4_header_sum(out))));
  return kIpv4Bytes;
}

}  // namespace paceline::wire
