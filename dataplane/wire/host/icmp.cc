#include "dataplane/wire/host/icmp.h"

#include <algorithm>

#include "dataplane/wire/bytes/checksum.h"
#include "dataplane/wire/host/inet_sum.h"

namespace paceline::wire {
namespace {

constexpr std::uint8_t kReplyTtl = 64;

struct EchoTypes {
  std::uint8_t request;
  std::uint8_t reply;
};
constexpr EchoTypes types_of(bool ipv6) { return ipv6 ? EchoTypes{128, 129} : EchoTypes{8, 0}; }

}  // namespace

HostError parse_echo(std::span<const std::byte> ip, std::span<const std::byte> rest, bool ipv6,
                     EchoMessage& out) {
  if (const HostError e = parse_ip(ip, rest.size(), ipv6, out.ip); e != HostError::ok) return e;
  if (out.ip.protocol != (ipv6 ? kIpProtocolIcmpV6 : kIpProtocolIcmp)) return HostError::protocol;
  const std::size_t bytes = out.ip.datagram_bytes - out.ip.header_bytes;
  if (bytes < kEchoBytes || ip.size() < out.ip.header_bytes + kEchoBytes) {
    return HostError::too_short;
  }
  const std::byte* const p = ip.data() + out.ip.header_bytes;
  const EchoTypes types = types_of(ipv6);
  if (load_u8(p) != types.request && load_u8(p) != types.reply) return HostError::icmp_type;

  const std::size_t here = std::min(bytes, ip.size() - out.ip.header_bytes);
  InetSum sum;
  if (ipv6) {
    sum.add_pseudo_header(out.ip.source, out.ip.destination, static_cast<std::uint32_t>(bytes),
                          kIpProtocolIcmpV6);
  }
  sum.add({p, here});
  sum.add(rest.first(bytes - here));
  if (sum.folded() != 0xFFFF) return HostError::icmp_checksum;
  if (load_u8(p + 1) != 0) return HostError::icmp_code;
  if (ipv6 && out.ip.source.is_unspecified()) return HostError::ip_source;
  out.reply = load_u8(p) == types.reply;
  out.identifier = load_be16(p + 4);
  out.sequence = load_be16(p + 6);
  out.data_bytes = bytes - kEchoBytes;
  return HostError::ok;
}

void make_echo_reply(std::span<std::byte> ip, const EchoMessage& request) {
  IpHeader header = request.ip;
  header.source = request.ip.destination;
  header.destination = request.ip.source;
  header.ttl = kReplyTtl;
  store_ip(ip.data(), header, request.ip.datagram_bytes - request.ip.header_bytes);
  // Only the type changes among the bytes that the checksum covers: exchanging the addresses does
  // not change the sum of the pseudo-header.
  std::byte* const p = ip.data() + request.ip.header_bytes;
  const std::uint16_t before = load_be16(p);
  store_u8(p, types_of(request.ip.ipv6).reply);
  const std::uint16_t checksum = updated_checksum(load_be16(p + 2), before, load_be16(p));
  // Over nothing but zeros the update gives the other zero, which would not verify.
  store_be16(p + 2, checksum == 0 ? 0xFFFF : checksum);
}

std::size_t store_echo(std::byte* out, const EchoMessage& message,
                       std::span<const std::byte> data) {
  const EchoTypes types = types_of(message.ip.ipv6);
  IpHeader header = message.ip;
  header.protocol = message.ip.ipv6 ? kIpProtocolIcmpV6 : kIpProtocolIcmp;
  const std::size_t ip_bytes = store_ip(out, header, kEchoBytes + data.size());
  std::byte* const p = out + ip_bytes;
  store_u8(p, message.reply ? types.reply : types.request);
  store_u8(p + 1, 0);
  store_be16(p + 2, 0);
  store_be16(p + 4, message.identifier);
  store_be16(p + 6, message.sequence);
  InetSum sum;
  if (message.ip.ipv6) {
    sum.add_pseudo_header(header.source, header.destination,
                          static_cast<std::uint32_t>(kEchoBytes + data.size()), kIpProtocolIcmpV6);
  }
  sum.add({p, kEchoBytes});
  sum.add(data);
  store_be16(p + 2, sum.checksum());
  return ip_bytes + kEchoBytes;
}

}  // namespace paceline::wire
