#include "dataplane/wire/packet/icrc.h"

#include <cassert>
#include <cstring>

#include "dataplane/wire/bytes/crc32.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline::wire {
namespace {

constexpr std::size_t kLocalRouteHeaderBytes = 8;
// Bytes that are copied to be masked, up to the end of the base transport header. The rest is read
// in place.
constexpr std::size_t kMaskedIpv4 = kIpv4Bytes + kUdpBytes + kBthBytes;
constexpr std::size_t kMaskedIpv6 = kIpv6Bytes + kUdpBytes + kBthBytes;
// Headers a little longer, and small payloads, are copied whole: one pass over one buffer is faster
// than two.
constexpr std::size_t kCopyBytes = 248;

void mask(std::byte* ip, bool ipv6) {
  std::byte* udp;
  if (ipv6) {
    // Version stays; traffic class and flow label are the other 28 bits.
    store_be32(ip, load_be32(ip) | 0x0FFF'FFFFU);
    store_u8(ip + 7, 0xFF);
    udp = ip + kIpv6Bytes;
  } else {
    store_u8(ip + 1, 0xFF);
    store_u8(ip + 8, 0xFF);
    store_be16(ip + 10, 0xFFFF);
    udp = ip + kIpv4Bytes;
  }
  store_be16(udp + 6, 0xFFFF);
  store_u8(udp + kUdpBytes + 4, 0xFF);
}

}  // namespace

std::uint32_t icrc(std::span<const std::byte> headers, std::size_t l3_offset,
                   std::span<const std::byte> rest) {
  const std::span<const std::byte> covered = headers.subspan(l3_offset);
  const bool ipv6 = load_u8(covered.data()) >> 4 == 6;
  assert(covered.size() >= (ipv6 ? kMaskedIpv6 : kMaskedIpv4));
  std::byte buffer[kLocalRouteHeaderBytes + kCopyBytes];
  std::memset(buffer, 0xFF, kLocalRouteHeaderBytes);
  const std::size_t copied =
      covered.size() <= kCopyBytes ? covered.size() : (ipv6 ? kMaskedIpv6 : kMaskedIpv4);
  std::memcpy(buffer + kLocalRouteHeaderBytes, covered.data(), copied);
  mask(buffer + kLocalRouteHeaderBytes, ipv6);
  if (copied == covered.size() && copied + rest.size() <= kCopyBytes) {
    if (!rest.empty()) {
      std::memcpy(buffer + kLocalRouteHeaderBytes + copied, rest.data(), rest.size());
    }
    return crc32(0, {buffer, kLocalRouteHeaderBytes + copied + rest.size()});
  }
  std::uint32_t crc = crc32(0, {buffer, kLocalRouteHeaderBytes + copied});
  if (copied < covered.size()) crc = crc32(crc, covered.subspan(copied));
  return rest.empty() ? crc : crc32(crc, rest);
}

}  // namespace paceline::wire
