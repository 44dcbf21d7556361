#include "dataplane/wire/packet/patch.h"

#include "dataplane/wire/bytes/checksum.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline::wire {
namespace {

struct Network {
  std::size_t offset = 0;  // 0: not an IP packet
  bool ipv6 = false;
};

// Finds the IP header; on success a whole one is inside the span.
Network find_network(std::span<const std::byte> headers) {
  const std::byte* const p = headers.data();
  if (headers.size() < kEthernetBytes + kIpv4Bytes) return {};
  std::size_t offset = kEthernetBytes;
  std::uint16_t ether_type = load_be16(p + 12);
  if (ether_type == kEtherTypeVlan) {
    ether_type = load_be16(p + 16);
    offset += kVlanBytes;
  }
  if (ether_type == kEtherTypeIpv4) {
    const bool whole = headers.size() >= offset + kIpv4Bytes && load_u8(p + offset) == 0x45;
    return whole ? Network{offset, false} : Network{};
  }
  if (ether_type == kEtherTypeIpv6) {
    const bool whole = headers.size() >= offset + kIpv6Bytes && load_u8(p + offset) >> 4 == 6;
    return whole ? Network{offset, true} : Network{};
  }
  return {};
}

Ecn ecn_at(const std::byte* ip, bool ipv6) {
  return static_cast<Ecn>((ipv6 ? load_u8(ip + 1) >> 4 : load_u8(ip + 1)) & 3U);
}

void set_ecn(std::byte* ip, bool ipv6, Ecn ecn) {
  const std::uint16_t old_word = load_be16(ip);
  const auto bits = static_cast<unsigned>(ecn);
  if (ipv6) {
    store_be16(ip, static_cast<std::uint16_t>((old_word & ~0x0030U) | bits << 4));
    return;
  }
  const auto new_word = static_cast<std::uint16_t>((old_word & ~0x0003U) | bits);
  store_be16(ip, new_word);
  store_be16(ip + 10, updated_checksum(load_be16(ip + 10), old_word, new_word));
}

}  // namespace

bool patch_ecn(std::span<std::byte> headers, Ecn ecn) {
  const Network n = find_network(headers);
  if (n.offset == 0) return false;
  set_ecn(headers.data() + n.offset, n.ipv6, ecn);
  return true;
}

bool mark_ce(std::span<std::byte> headers) {
  const Network n = find_network(headers);
  if (n.offset == 0 || ecn_at(headers.data() + n.offset, n.ipv6) == Ecn::not_ect) return false;
  set_ecn(headers.data() + n.offset, n.ipv6, Ecn::ce);
  return true;
}

std::optional<Ecn> read_ecn(std::span<const std::byte> headers) {
  const Network n = find_network(headers);
  if (n.offset == 0) return std::nullopt;
  return ecn_at(headers.data() + n.offset, n.ipv6);
}

bool patch_dscp(std::span<std::byte> headers, std::uint8_t dscp) {
  const Network n = find_network(headers);
  if (n.offset == 0) return false;
  std::byte* const ip = headers.data() + n.offset;
  const std::uint16_t old_word = load_be16(ip);
  const unsigned bits = dscp & 63U;
  if (n.ipv6) {
    store_be16(ip, static_cast<std::uint16_t>((old_word & ~0x0FC0U) | bits << 6));
    return true;
  }
  const auto new_word = static_cast<std::uint16_t>((old_word & ~0x00FCU) | bits << 2);
  store_be16(ip, new_word);
  store_be16(ip + 10, updated_checksum(load_be16(ip + 10), old_word, new_word));
  return true;
}

}  // namespace paceline::wire
