#include "dataplane/fabric/forwarding/host_port.h"

#include "dataplane/fabric/forwarding/forwarding.h"

namespace paceline::fabric {

// After the first packet the wire is busy, so a burst is accepted one by one.
std::size_t HostPort::tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) {
  if (burst.empty() || !takes(now, traffic_class)) return lose(now, traffic_class, burst);
  burst[0]->traffic_class = traffic_class;
  forwarding_.inject(uplink_, burst[0], later(now, uplink_.busy));
  return 1;
}

std::size_t HostPort::lose(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) {
  if (burst.empty() || !loses()) return 0;
  burst[0]->traffic_class = traffic_class;
  forwarding_.lose_at_host(uplink_, burst[0], now);
  return 1;
}

PacketPool& HostPort::packets() { return forwarding_.state().pool; }

PortInfo HostPort::info() const {
  const FabricSpec& spec = forwarding_.state().spec;
  PortInfo info;
  info.link_rate = spec.links[uplink_.id / 2].rate;
  info.wire = spec.wire;
  info.mtu_bytes = spec.mtu_bytes;
  info.payload_room = spec.payload_room;
  info.computes_icrc = spec.computes_icrc;
  info.telemetry = spec.telemetry;
  info.notices = spec.notice.enabled;
  info.lends_payload = spec.lends_payload && spec.computes_icrc;
  return info;
}

}  // namespace paceline::fabric
