// The NIC instances of a service by their addresses. Each instance is a host of its own, and each
// of its ports has addresses. A program sees all of them, or the one that PACELINE_NIC names for
// its libibverbs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "dataplane/attach/protocol.h"
#include "dataplane/service/cm/tables/socket_address.h"

namespace paceline::service::cm {

// The instance that a program sees; nothing: all.
using Visible = std::optional<std::size_t>;
inline bool sees(const Visible& visible, std::size_t nic) { return !visible || *visible == nic; }
inline bool overlap(const Visible& a, const Visible& b) { return !a || !b || *a == *b; }

// Where an address is among the GIDs of an instance.
struct GidPlace {
  std::uint8_t port = 1;
  std::uint8_t index = 0;
};

class NicBook {
 public:
  // Whether an instance has a path to an address, and whether a port's link is up. Called at any
  // time.
  using Reaches = std::function<bool(std::size_t from, const wire::IpAddress& to)>;
  using Up = std::function<bool(std::size_t nic, std::uint32_t port)>;

  NicBook(std::vector<attach::NicInfo> nics, Reaches reaches, Up up)
      : nics_(std::move(nics)),
        reaches_(std::move(reaches)),
        up_(std::move(up)),
        gone_(nics_.size()) {}

  std::size_t size() const { return nics_.size(); }
  const attach::NicInfo& nic(std::size_t index) const { return nics_[index]; }
  bool reaches(std::size_t from, const wire::IpAddress& to) const { return reaches_(from, to); }
  // Of the port that has this address.
  bool up(std::size_t nic, const wire::IpAddress& own) const {
    return up_(nic, place_of(nic, own).port);
  }
  // It keeps its addresses, but nothing new begins at it.
  void take_away(std::size_t nic) { gone_[nic] = true; }
  bool gone(std::size_t nic) const { return gone_[nic]; }

  // The instance that has this address.
  std::optional<std::size_t> owner(const wire::IpAddress& address) const;
  // Of an address that `nic` has; of another, the first place.
  GidPlace place_of(std::size_t nic, const wire::IpAddress& address) const;
  // The first address of `nic` in that family.
  std::optional<wire::IpAddress> address_of(std::size_t nic, bool v4) const;
  // The address from which `nic` reaches `to`: in its family, which `nic` must have, and at the
  // port of its subnet if there are several.
  wire::IpAddress source_for(std::size_t nic, const wire::IpAddress& to) const;
  // The first visible instance with an address of that family that is not gone, as of what follows.
  std::optional<std::size_t> first(const Visible& visible, bool v4) const;
  // The instance by which a program reaches `to`: one that does not own the address if there is
  // one, so that packets cross the fabric, else the owner. For a multicast group it is the first.
  std::optional<std::size_t> way_to(const Visible& visible, const wire::IpAddress& to) const;
  // Payload bytes of a packet, as enum ibv_mtu; the rate of the link, as enum ibv_rate.
  std::uint8_t mtu_code(std::size_t nic) const;
  std::uint8_t rate_code(std::size_t nic) const;

 private:
  std::vector<attach::NicInfo> nics_;
  Reaches reaches_;
  Up up_;
  std::vector<bool> gone_;
};

}  // namespace paceline::service::cm
