// Which addresses are ours, and which is the next hop to another address: the address itself if one
// of our prefixes covers it, else the gateway of its family.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/neighbour/neighbour_config.h"
#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/host/ip_header.h"

namespace paceline::neighbour {

class HostRoutes {
 public:
  static constexpr std::uint8_t kNotOwn = 0xFF;

  // `config` without problems.
  explicit HostRoutes(const HostConfig& config);

  // Index of an own address, or kNotOwn.
  std::uint8_t own_index(const wire::IpAddress& address) const {
    for (std::uint8_t i = 0; i < count_; ++i) {
      if (own_[i].address == address) return i;
    }
    return kNotOwn;
  }
  // Our own address whose solicited-node group this is, or kNotOwn.
  std::uint8_t own_group_index(const wire::IpAddress& group) const;
  bool on_link(const wire::IpAddress& address) const;

  enum class Hop : std::uint8_t { found, own, not_unicast, no_route };
  // For Hop::found, `hop` is the address to resolve: the destination itself or its gateway.
  Hop next_hop(const wire::IpAddress& destination, wire::IpAddress& hop) const;

  // Our own address to use when asking for `hop`: `source` if it is ours (RFC 4861, 7.2.2), else
  // one in the same prefix, else one of the family; kNotOwn when the family has none.
  std::uint8_t asks_as(const wire::IpAddress& source, const wire::IpAddress& hop) const;

  std::uint8_t size() const { return count_; }
  const wire::IpAddress& address(std::uint8_t index) const { return own_[index].address; }

 private:
  // Configured for all of its prefix: the last address of an IPv4 subnet is its broadcast (RFC
  // 1122, 3.2.1.3), except for /31 and /32 (RFC 3021).
  bool is_subnet_broadcast(const wire::IpAddress& address) const;

  std::array<HostAddress, kMaxHostAddresses> own_{};
  std::uint8_t count_ = 0;
  std::optional<wire::IpAddress> gateway_v4_;
  std::optional<wire::IpAddress> gateway_v6_;
};

}  // namespace paceline::neighbour
