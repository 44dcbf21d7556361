#include "dataplane/service/nics/nic_info.h"

#include <algorithm>
#include <cstring>

#include "dataplane/attach/text.h"

namespace paceline::service {

namespace {

// EUI-64 of a MAC address (RFC 4291, appendix A), its bytes in the order of the network.
std::uint64_t guid_of(const wire::MacAddress& mac) {
  std::array<std::byte, 8> bytes{mac.bytes[0] ^ std::byte{2},
                                 mac.bytes[1],
                                 mac.bytes[2],
                                 std::byte{0xFF},
                                 std::byte{0xFE},
                                 mac.bytes[3],
                                 mac.bytes[4],
                                 mac.bytes[5]};
  std::uint64_t guid = 0;
  std::memcpy(&guid, bytes.data(), sizeof guid);
  return guid;
}

}  // namespace

attach::NicInfo nic_info(const std::string& name, const transport::EngineConfig& config, Rate rate,
                         std::uint16_t local_id) {
  attach::NicInfo info;
  attach::put_text(info.name, name);
  info.guid = guid_of(config.mac);
  info.rate_mbps = rate.bps / 1'000'000;
  std::size_t gids = 0;
  for (const bool v4 : {true, false}) {
    for (const wire::IpAddress& address : {config.address, config.other_address}) {
      if (address.is_unspecified() || address.is_v4() != v4) continue;
      info.gids[gids] = address.bytes;
      info.gid_kinds[gids++] = v4 ? attach::GidKind::roce_v2_ipv4 : attach::GidKind::roce_v2_ipv6;
    }
  }
  info.mac = config.mac.bytes;
  info.mtu = static_cast<std::uint16_t>(config.payload_mtu);
  info.local_id = local_id;
  info.more_ports = static_cast<std::uint8_t>(config.addressed_ports - 1);
  info.up = static_cast<std::uint8_t>((1U << config.addressed_ports) - 1);
  info.clock_khz = 1'000'000;
  return info;
}

CaptureReport capture_report(const CaptureRingWriter& ring) {
  return {true, ring.frames(), ring.missed(), ring.bytes(), ring.snap()};
}

NicCongestion nic_congestion(const transport::EngineConfig& config, const PortInfo& port,
                             const std::string& profile, const std::string& fallback_profile) {
  // Ethernet, IPv4, UDP, BTH around the payload, and the ICRC is the wire's.
  constexpr std::uint32_t kHeaderBytes = 14 + 20 + 8 + 12 + 8;
  NicCongestion out;
  // Without spraying, a queue pair uses one port of a bond.
  const bool sprays = config.planes > 1 && config.multipath != transport::Multipath::none;
  out.facts.link_rate = Rate{port.link_rate.bps / (sprays ? 1 : config.planes)};
  out.facts.planes = static_cast<std::uint8_t>(sprays ? config.planes : 1);
  out.facts.mtu_bytes = config.payload_mtu;
  out.facts.full_packet_bytes = static_cast<std::uint32_t>(
      port.wire.wire_bytes(kHeaderBytes + config.payload_mtu, config.payload_mtu));
  out.facts.base_rtt_ns = config.base_rtt_ns;
  out.facts.telemetry = port.telemetry && config.reliability == transport::Reliability::selective;
  out.facts.notices = port.notices;
  out.profile = profile;
  out.fallback_profile = fallback_profile;
  out.primary = config.primary;
  out.fallback = config.fallback;
  return out;
}

}  // namespace paceline::service
