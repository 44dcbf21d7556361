#include "dataplane/driver/ports/testbed_setup.h"

namespace paceline {

neighbour::HostConfig host_config_of(const config::HostConfig& host, const wire::MacAddress& mac) {
  neighbour::HostConfig out;
  out.mac = mac;
  for (const config::AddressConfig& a : host.addresses) {
    out.addresses.push_back({a.address, a.prefix_bits});
  }
  out.gateway_v4 = host.gateway_v4;
  out.gateway_v6 = host.gateway_v6;
  for (const config::FixedNeighbourConfig& n : host.fixed) out.fixed.push_back({n.address, n.mac});
  if (host.vlan != 0) out.vlan_id = static_cast<std::uint16_t>(host.vlan);
  out.ip_mtu = host.ip_mtu;
  out.answer_echo = host.answer_echo;
  out.echo_per_second = host.echo_per_second;
  out.announcements = host.announcements;
  out.limits.capacity = host.neighbours;
  out.timing.retransmit = host.retransmit;
  out.timing.reachable = host.reachable;
  out.timing.failed_hold = host.failed_hold;
  out.timing.stale_lifetime = host.stale_lifetime;
  return out;
}

}  // namespace paceline
