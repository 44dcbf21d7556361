// Hosts that are somewhere else: what stands in for them says where a packet goes, for it knows MAC
// addresses and frames that are not IP.
#include <array>

#include "dataplane/base/random.h"
#include "dataplane/fabric/host_port.h"
#include "dataplane/fabric/network.h"
#include "dataplane/fabric/switching/dwrr.h"
#include "dataplane/fabric/switching/egress.h"
#include "dataplane/fabric/switching/switch.h"
#include "dataplane/fabric/wire/link.h"

namespace paceline::fabric {

namespace {

// All that tells flows apart, whatever the protocol: addresses and ports of IPv4 and IPv6, MAC
// addresses of anything else. Not what changes from packet to packet of a flow.
std::uint32_t flow_hash(const Packet& packet) {
  constexpr std::size_t kEthernet = 14;
  std::uint64_t hash = 0;
  const auto add = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to && i < packet.header_bytes; ++i) {
      hash = mix64(hash ^ std::to_integer<std::uint64_t>(packet.header[i]));
    }
  };
  add(0, kEthernet);
  if (packet.bth_offset >= kEthernet + 28) {  // addresses, then UDP right before
    add(static_cast<std::size_t>(packet.bth_offset) - 16, packet.bth_offset - 6U);
  }
  return static_cast<std::uint32_t>(hash);
}

}  // namespace

bool Network::send(std::uint32_t host, std::uint8_t traffic_class, Packet* packet, std::uint32_t to,
                   Picos now) {
  if (send_ready_at(host, traffic_class) > now) return false;
  Link& uplink = links_[topology_.host_uplink(host)];
  // A frame without a transport header has no ICRC, which frame_bytes() counts.
  const std::uint32_t frame = packet->frame_bytes() - (packet->bth_offset == 0 ? 4U : 0U);
  packet->wire_bytes = spec_.wire.wire_bytes(frame, packet->payload_bytes);
  packet->traffic_class = traffic_class;
  if (moves_answers_) packet->traffic_class = class_in_switches(*packet);
  packet->entropy = flow_hash(*packet);
  packet->route = to < spec_.hosts ? to : kRouteNone;
  ++stats_.injected_packets;
  stats_.injected_bytes += packet->wire_bytes;
  transmit(uplink, packet, later(now, uplink.busy));
  return true;
}

Picos Network::send_ready_at(std::uint32_t host, std::uint8_t traffic_class) {
  return host_port(host).tx_ready_at(traffic_class);
}

}  // namespace paceline::fabric
