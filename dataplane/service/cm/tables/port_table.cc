#include "dataplane/service/cm/tables/port_table.h"

#include <cerrno>

namespace paceline::service::cm {

namespace {

// Linux's default ip_local_port_range.
constexpr std::uint32_t kFirstFree = 32768;
constexpr std::uint32_t kFreePorts = 60999 - kFirstFree + 1;

}  // namespace

int PortTable::conflict(const PortClaim& claim, std::uint16_t port, bool may_reuse) const {
  const auto [first, last] = entries_.equal_range({claim.space, port});
  for (auto at = first; at != last; ++at) {
    const PortClaim& other = at->second.claim;
    if (other.id == claim.id || !overlap(other.where, claim.where)) continue;
    if (may_reuse && other.reuse && !at->second.listening) continue;
    if (claim.own_family_only && other.own_family_only &&
        claim.address.family != other.address.family) {
      continue;
    }
    if (claim.address.any() || other.address.any()) return EADDRNOTAVAIL;
    if (claim.address.ip == other.address.ip) return EADDRINUSE;
  }
  return 0;
}

std::optional<std::uint16_t> PortTable::free_port(const PortClaim& claim) {
  const auto begin = static_cast<std::uint32_t>(random_.below(kFreePorts));
  for (std::uint32_t i = 0; i < kFreePorts; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirstFree + (begin + i) % kFreePorts);
    if (conflict(claim, port, false) == 0) return port;
  }
  return std::nullopt;
}

int PortTable::take(const PortClaim& claim, std::uint16_t& port) {
  if (port == 0) {
    const auto free = free_port(claim);
    if (!free) return EADDRNOTAVAIL;
    port = *free;
  } else if (const int error = conflict(claim, port, claim.reuse); error != 0) {
    return error;
  }
  drop(claim.id);
  const auto at = entries_.emplace(Key{claim.space, port}, Entry{claim, false});
  places_.emplace(claim.id, at);
  return 0;
}

void PortTable::settle(std::uint32_t id, const SocketAddress& address, std::size_t nic) {
  const auto at = places_.find(id);
  if (at == places_.end()) return;
  at->second->second.claim.address = address;
  at->second->second.claim.where = nic;
}

int PortTable::listen(std::uint32_t id) {
  const auto at = places_.find(id);
  if (at == places_.end()) return EINVAL;
  const auto& [key, entry] = *at->second;
  if (const int error = conflict(entry.claim, key.second, false); error != 0) return error;
  at->second->second.listening = true;
  return 0;
}

void PortTable::drop(std::uint32_t id) {
  const auto at = places_.find(id);
  if (at == places_.end()) return;
  entries_.erase(at->second);
  places_.erase(at);
}

std::optional<std::uint32_t> PortTable::listener(PortSpace space, std::uint16_t port,
                                                 std::size_t nic,
                                                 const wire::IpAddress& address) const {
  const auto [first, last] = entries_.equal_range({space, port});
  for (auto at = first; at != last; ++at) {
    const Entry& entry = at->second;
    if (!entry.listening || !sees(entry.claim.where, nic)) continue;
    if (!entry.claim.address.any()) {
      if (entry.claim.address.ip == address) return entry.claim.id;
      continue;
    }
    // A claim of any IPv6 address also takes IPv4, unless the program says otherwise.
    const bool all = entry.claim.address.family == AF_INET6 && !entry.claim.own_family_only;
    if (all || entry.claim.address.v4() == address.is_v4()) return entry.claim.id;
  }
  return std::nullopt;
}

}  // namespace paceline::service::cm
