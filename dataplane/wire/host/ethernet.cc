#include "dataplane/wire/host/ethernet.h"

#include <cassert>
#include <cstring>

namespace paceline::wire {

HostError parse_ethernet(std::span<const std::byte> frame, EthernetHeader& out) {
  if (frame.size() < kEthernetBytes) return HostError::too_short;
  const std::byte* const p = frame.data();
  out.destination = MacAddress::load(p);
  out.source = MacAddress::load(p + 6);
  out.ether_type = load_be16(p + kTagOffset);
  out.has_vlan = false;
  out.vlan_tci = 0;
  out.l3_offset = kEthernetBytes;
  if (out.ether_type == kEtherTypeServiceVlan) return HostError::vlan_too_deep;
  if (out.ether_type != kEtherTypeVlan) return HostError::ok;
  if (frame.size() < kEthernetBytes + kVlanBytes) return HostError::too_short;
  out.has_vlan = true;
  out.vlan_tci = load_be16(p + kEthernetBytes);
  out.ether_type = load_be16(p + kEthernetBytes + 2);
  out.l3_offset = kEthernetBytes + kVlanBytes;
  const bool deeper = out.ether_type == kEtherTypeVlan || out.ether_type == kEtherTypeServiceVlan;
  return deeper ? HostError::vlan_too_deep : HostError::ok;
}

std::size_t store_ethernet(std::byte* out, const MacAddress& destination, const MacAddress& source,
                           std::optional<std::uint16_t> tci, std::uint16_t ether_type) {
  std::memcpy(out, destination.bytes.data(), 6);
  std::memcpy(out + 6, source.bytes.data(), 6);
  std::size_t at = kTagOffset;
  if (tci) {
    store_be16(out + at, kEtherTypeVlan);
    store_be16(out + at + 2, *tci);
    at += kVlanBytes;
  }
  store_be16(out + at, ether_type);
  return at + 2;
}

std::size_t set_vlan(std::span<std::byte> buffer, std::size_t bytes, std::uint16_t tci) {
  assert(bytes >= kEthernetBytes && bytes <= buffer.size());
  std::byte* const p = buffer.data() + kTagOffset;
  if (load_be16(p) != kEtherTypeVlan || bytes < kEthernetBytes + kVlanBytes) {
    if (bytes + kVlanBytes > buffer.size()) return 0;
    std::memmove(p + kVlanBytes, p, bytes - kTagOffset);
    store_be16(p, kEtherTypeVlan);
    bytes += kVlanBytes;
  }
  store_be16(p + 2, tci);
  return bytes;
}

std::size_t remove_vlan(std::span<std::byte> buffer, std::size_t bytes) {
  assert(bytes >= kEthernetBytes && bytes <= buffer.size());
  std::byte* const p = buffer.data() + kTagOffset;
  if (load_be16(p) != kEtherTypeVlan || bytes < kEthernetBytes + kVlanBytes) return bytes;
  std::memmove(p, p + kVlanBytes, bytes - kTagOffset - kVlanBytes);
  return bytes - kVlanBytes;
}

}  // namespace paceline::wire
