// The ports that CM ids hold in each port space, and the ids that listen there. Each NIC instance
// has ports of its own; an id that is bound to no instance holds its port on all that it sees.
// Errors are those of Linux's rdma_bind_addr and rdma_listen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "dataplane/base/numbers/random.h"
#include "dataplane/service/cm/mad/ip_service.h"
#include "dataplane/service/cm/tables/nic_book.h"

namespace paceline::service::cm {

struct PortClaim {
  std::uint32_t id = 0;  // of the CM id, which has one claim
  PortSpace space = PortSpace::tcp;
  SocketAddress address;  // any(): bound to no NIC instance
  Visible where;          // with an address: its instance
  bool reuse = false;
  bool own_family_only = false;
};

class PortTable {
 public:
  explicit PortTable(std::uint64_t seed) : random_(seed) {}

  // Returns 0; if `port` is 0, sets it to a free one. EADDRINUSE if another claim of the same
  // address excludes this one; EADDRNOTAVAIL if one of the two is of any address, or if no port is
  // free.
  int take(const PortClaim& claim, std::uint16_t& port);
  // Sets the address of an id that was bound to none.
  void settle(std::uint32_t id, const SocketAddress& address, std::size_t nic);
  // Returns 0, or an errno as of take(): no other claim may have the port, not even with `reuse`.
  int listen(std::uint32_t id);
  void drop(std::uint32_t id);

  // The id that listens for requests to `address` of instance `nic`.
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

  // 0, or the errno of a claim that excludes this one.
  int conflict(const PortClaim& claim, std::uint16_t port, bool may_reuse) const;
  std::optional<std::uint16_t> free_port(const PortClaim& claim);

  Entries entries_;
  std::map<std::uint32_t, Entries::iterator> places_;
  Random random_;
};

}  // namespace paceline::service::cm
