#include "dataplane/fabric/forwarding/plane_port.h"

#include "dataplane/fabric/forwarding/forwarding.h"

namespace paceline::fabric {

PlanePort::PlanePort(Forwarding& forwarding, HostPort& port, std::uint32_t endpoint,
                     const Topology& topology, const std::vector<bool>& failed)
    : forwarding_(forwarding),
      port_(port),
      topology_(topology),
      failed_(failed),
      hosts_(forwarding.state().spec.hosts / forwarding.state().spec.ports),
      ports_(forwarding.state().spec.ports),
      own_(endpoint / hosts_),
      shared_(forwarding.state().spec.shared_planes),
      subnets_(forwarding.state().spec.port_subnets) {}

std::size_t PlanePort::tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) {
  if (burst.empty() || !port_.takes(now, traffic_class)) {
    return port_.lose(now, traffic_class, burst);
  }
  Packet& packet = *burst[0];
  packet.traffic_class = traffic_class;
  forwarding_.prepare(packet);
  if (subnets_ && packet.route < hosts_ * ports_) {
    if (!shared_ && packet.route / hosts_ != own_) packet.route = kRouteNone;
  } else if (packet.route < hosts_) {
    packet.route += port_of_destination(packet, packet.route) * hosts_;
  } else if (packet.route < hosts_ * ports_) {
    packet.route = kRouteNone;  // an endpoint has no address of its own
  }
  forwarding_.inject_prepared(port_.uplink(), &packet, later(now, port_.uplink().busy));
  return 1;
}

std::uint32_t PlanePort::port_of_destination(const Packet& packet, std::uint32_t host) {
  if (!shared_) return own_;
  std::uint32_t first = turn_;
  if (packet.traffic_class == kControlClass || packet.bth_offset < 8) {
    turn_ = turn_ + 1 < ports_ ? turn_ + 1 : 0;
  } else {
    const std::size_t at = packet.bth_offset - std::size_t{8};
    const auto source_port = std::to_integer<std::uint32_t>(packet.header[at]) << 8 |
                             std::to_integer<std::uint32_t>(packet.header[at + 1]);
    first = source_port / ports_ % ports_;
  }
  for (std::uint32_t i = 0; i < ports_; ++i) {
    const std::uint32_t port = (first + i) % ports_;
    if (!failed_[topology_.host_uplink(port * hosts_ + host) / 2]) return port;
  }
  return first;
}

}  // namespace paceline::fabric
