#include "dataplane/neighbour/host_routes.h"

#include <cassert>

#include "dataplane/wire/host/ndp.h"

namespace paceline::neighbour {

HostRoutes::HostRoutes(const HostConfig& config)
    : gateway_v4_(config.gateway_v4), gateway_v6_(config.gateway_v6) {
  assert(config.addresses.size() <= kMaxHostAddresses);
  for (const HostAddress& address : config.addresses) own_[count_++] = address;
}

std::uint8_t HostRoutes::own_group_index(const wire::IpAddress& group) const {
  for (std::uint8_t i = 0; i < count_; ++i) {
    if (!own_[i].address.is_v4() && wire::solicited_node_group(own_[i].address) == group) return i;
  }
  return kNotOwn;
}

bool HostRoutes::on_link(const wire::IpAddress& address) const {
  if (!address.is_v4() && wire::is_link_local_v6(address)) return true;
  for (std::uint8_t i = 0; i < count_; ++i) {
    if (same_prefix(own_[i].address, address, own_[i].prefix_bits)) return true;
  }
  return false;
}

bool HostRoutes::is_subnet_broadcast(const wire::IpAddress& address) const {
  if (!address.is_v4()) return false;
  for (std::uint8_t i = 0; i < count_; ++i) {
    const HostAddress& own = own_[i];
    if (own.prefix_bits >= 31 || !same_prefix(own.address, address, own.prefix_bits)) continue;
    const std::uint32_t host_bits = 0xFFFF'FFFFU >> own.prefix_bits;
    if ((address.v4_value() & host_bits) == host_bits) return true;
  }
  return false;
}

HostRoutes::Hop HostRoutes::next_hop(const wire::IpAddress& destination,
                                     wire::IpAddress& hop) const {
  if (!wire::is_host_address(destination) || is_subnet_broadcast(destination)) {
    return Hop::not_unicast;
  }
  if (own_index(destination) != kNotOwn) return Hop::own;
  if (on_link(destination)) {
    hop = destination;
    return Hop::found;
  }
  const auto& gateway = destination.is_v4() ? gateway_v4_ : gateway_v6_;
  if (!gateway) return Hop::no_route;
  hop = *gateway;
  return Hop::found;
}

std::uint8_t HostRoutes::asks_as(const wire::IpAddress& source, const wire::IpAddress& hop) const {
  std::uint8_t family = kNotOwn;
  std::uint8_t prefix = kNotOwn;
  for (std::uint8_t i = 0; i < count_; ++i) {
    const HostAddress& own = own_[i];
    if (own.address.is_v4() != hop.is_v4()) continue;
    if (own.address == source) return i;
    if (family == kNotOwn) family = i;
    if (prefix == kNotOwn && same_prefix(own.address, hop, own.prefix_bits)) prefix = i;
  }
  return prefix != kNotOwn ? prefix : family;
}

}  // namespace paceline::neighbour
