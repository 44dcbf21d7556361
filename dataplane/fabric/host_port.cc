#include "dataplane/fabric/host_port.h"

#include "dataplane/fabric/network.h"

namespace paceline::fabric {

std::size_t HostPort::rx(std::span<Packet*> burst) {
  std::size_t n = 0;
  while (n < burst.size() && head_ != nullptr) {
    Packet* packet = head_;
    head_ = packet->next;
    packet->next = nullptr;
    burst[n++] = packet;
  }
  return n;
}

// After the first packet the wire is busy, so a burst is accepted one by one.
std::size_t HostPort::tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) {
  if (burst.empty() || uplink_.busy > now + ahead_) return 0;
  if ((uplink_.held() >> traffic_class & 1U) != 0) return 0;
  burst[0]->traffic_class = traffic_class;
  network_.inject(uplink_, burst[0], later(now, uplink_.busy));
  return 1;
}

PacketPool& HostPort::packets() { return network_.pool(); }

PortInfo HostPort::info() const {
  const FabricSpec& spec = network_.spec();
  PortInfo info;
  info.link_rate = spec.links[uplink_.id / 2].rate;
  info.wire = spec.wire;
  info.mtu_bytes = spec.mtu_bytes;
  info.payload_room = spec.payload_room;
  info.computes_icrc = spec.computes_icrc;
  info.telemetry = spec.telemetry;
  info.lends_payload = spec.lends_payload && spec.computes_icrc;
  return info;
}

}  // namespace paceline::fabric
