#include "dataplane/wire/host/arp.h"

#include <cstring>

#include "dataplane/wire/headers/headers.h"
#include "dataplane/wire/host/ip_header.h"

namespace paceline::wire {
namespace {

constexpr std::uint16_t kHardwareEthernet = 1;

}  // namespace

HostError parse_arp(std::span<const std::byte> arp, ArpMessage& out) {
  if (arp.size() < kArpBytes) return HostError::too_short;
  const std::byte* const p = arp.data();
  if (load_be16(p) != kHardwareEthernet || load_be16(p + 2) != kEtherTypeIpv4 ||
      load_be16(p + 4) != 0x0604) {
    return HostError::arp_format;
  }
  const std::uint16_t operation = load_be16(p + 6);
  if (operation != 1 && operation != 2) return HostError::arp_operation;
  out.operation = static_cast<ArpOperation>(operation);
  out.sender_mac = MacAddress::load(p + 8);
  out.sender = IpAddress::load_v4(p + 14);
  out.target_mac = MacAddress::load(p + 18);
  out.target = IpAddress::load_v4(p + 24);
  if (out.sender_mac.is_multicast() || out.sender_mac == MacAddress{}) return HostError::arp_sender;
  return out.is_probe() || is_host_address(out.sender) ? HostError::ok : HostError::arp_sender;
}

void store_arp(std::byte* out, const ArpMessage& message) {
  store_be16(out, kHardwareEthernet);
  store_be16(out + 2, kEtherTypeIpv4);
  store_be16(out + 4, 0x0604);
  store_be16(out + 6, static_cast<std::uint16_t>(message.operation));
  std::memcpy(out + 8, message.sender_mac.bytes.data(), 6);
  store_be32(out + 14, message.sender.v4_value());
  std::memcpy(out + 18, message.target_mac.bytes.data(), 6);
  store_be32(out + 24, message.target.v4_value());
}

}  // namespace paceline::wire
