// Prefetches what link_fired(link) will touch. Calls for one link come some events apart, and each
// reads what the one before has fetched: the link; its first packet; where that one goes next, a
// link (prefetch_next) or a host (prefetch_arrival); the queue at that link; the packets in it;
// what the first of them will touch when it leaves. From the third call on, also call
// prefetch_departure: it prefetches what leaves after the packet, one more with each call. Changes
// nothing.
#pragma once

#include <cstdint>

#include "dataplane/base/containers/slab.h"
#include "dataplane/port/packet.h"

namespace paceline::fabric {

class HostPort;
struct Egress;
struct FabricState;
struct Link;

class FabricAhead {
 public:
  // Both must outlive this.
  FabricAhead(const FabricState& state, const Slab<HostPort>& ports)
      : state_(state), ports_(ports) {}

  static constexpr std::uint32_t kNowhere = 0xFFFF'FFFF;
  struct Found {
    std::uint32_t out = kNowhere;     // where the first packet goes, if that is a link
    const Packet* leaving = nullptr;  // may leave when it arrives
  };
  void prefetch_actor(std::uint32_t actor) const;
  void prefetch_packet(std::uint32_t id) const;
  void prefetch_next(std::uint32_t id, Found& found) const;
  void prefetch_arrival(std::uint32_t id, Found& found) const;
  void prefetch_egress(std::uint32_t id, const Found& found) const;
  void prefetch_joined(std::uint32_t id, const Found& found) const;
  void prefetch_before(std::uint32_t id, const Found& found) const;
  void prefetch_departure(std::uint32_t id, Found& found) const;
  // The port of a host; with the next call its uplink.
  void prefetch_port(std::uint32_t host) const;
  void prefetch_uplink(std::uint32_t host) const;
  // Whether a link ends at a host or a switch; neither for an actor that is not a link.
  bool ends_at_a_switch(std::uint32_t actor) const;
  bool ends_at_a_host(std::uint32_t actor) const;
  // For a link that ends at a host: the host, and the packet that reaches it first; nullptr: none.
  std::uint32_t host_at(std::uint32_t id) const;
  const Packet* first_on(std::uint32_t id) const;

 private:
  const Egress& egress_of(const Link& link) const;
  void prefetch_behind(const Link& link, Found& found) const;

  const FabricState& state_;
  const Slab<HostPort>& ports_;
};

}  // namespace paceline::fabric
