// Which CM id has which port of which port space, and who listens there. Ports are those of hosts:
// the same one may be taken once per NIC instance, and by whoever sees several, on all of them.
// Errors are those of Linux's rdma_bind_addr and rdma_listen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "dataplane/base/random.h"
#include "dataplane/service/cm/mad/ip_service.h"
#include "dataplane/service/cm/tables/nic_book.h"

namespace paceline::service::cm {

struct PortClaim {
  std::uint32_t id = 0;  // of the CM id; one claim each
  PortSpace space = PortSpace::tcp;
  SocketAddress address;  // of no NIC instance in particular: any()
  Visible where;          // with an address: the instance that has it
  bool reuse = false;
  bool own_family_only = false;
};

class PortTable {
 public:
  explicit PortTable(std::uint64_t seed) : random_(seed) {}

  // 0, and the port, which port 0 leaves to the table; EADDRINUSE, or EADDRNOTAVAIL where one of
  // the two is for any address (or no port is left).
  int take(const PortClaim& claim, std::uint16_t& port);
  // Its address is known now.
  void settle(std::uint32_t id, const SocketAddress& address, std::size_t nic);
  // Nobody else may have the port, allowing reuse or not.
  int listen(std::uint32_t id);
  void drop(std::uint32_t id);

  // Who listens for what arrives at an instance under one of its addresses.
  std::optional<std::uint32_t> listener(PortSpace space, std::uint16_t port, std::size_t nic,
                                        const wire::IpAddress& address) const;
  std::size_t size() const { return places_.size(); }

 private:
  struct Entry {
    PortClaim claim;
    bool listening = false;
  };
  using Key = std::pair<PortSpace, std::uint16_t>;
  using Entries = std::multimap<Key, Entry>;

  // 0, or why the two cannot both have it.
  int conflict(const PortClaim& claim, std::uint16_t port, bool may_reuse) const;
  std::optional<std::uint16_t> free_port(const PortClaim& claim);

  Entries entries_;
  std::map<std::uint32_t, Entries::iterator> places_;
  Random random_;
};

}  // namespace paceline::service::cm
