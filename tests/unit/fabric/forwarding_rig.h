// Forwarding over a fabric's state, with neither a network nor engines: the test is the clock, and
// the hosts are what it injects and takes out.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/base/containers/slab.h"
#include "dataplane/fabric/forwarding/forwarding.h"
#include "dataplane/fabric/forwarding/host_port.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/topology.h"
#include "dataplane/port/packet_pool.h"

namespace paceline::fabric {

struct RigSend {
  Picos at{0};
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint16_t payload = 1'000;
};

struct RigDelivery {
  Picos at{0};
  std::uint32_t host = 0;
  std::uint64_t id = 0;
  Ecn ecn = Ecn::not_ect;
  friend auto operator<=>(const RigDelivery&, const RigDelivery&) = default;
};

struct ForwardingRig {
  explicit ForwardingRig(const FabricSpec& of)
      : spec(of),
        topology(spec),
        pool(64, 0, true),
        wheel(2 * static_cast<std::uint32_t>(spec.links.size()), 12),
        forwarding(spec, topology, pool, wheel, 0, *std::pmr::new_delete_resource()),
        ports(spec.hosts, *std::pmr::new_delete_resource()) {
    for (std::uint32_t host = 0; host < spec.hosts; ++host) {
      ports.emplace(forwarding, uplink(host), state().hosts[host], Picos{0}, false);
    }
  }

  FabricState& state() { return forwarding.state(); }
  Link& uplink(std::uint32_t host) { return state().wire[topology.host_uplink(host)]; }

  // In the data class; its digest is its number.
  void send(const RigSend& what) {
    Packet* packet = pool.alloc();
    packet->header_bytes = 54;
    packet->header = {};
    packet->bth_offset = 0;
    packet->payload_bytes = what.payload;
    packet->payload_kind = PayloadKind::none;
    packet->ecn = Ecn::ect0;
    packet->digest = next_id++;
    forwarding.inject_to(uplink(what.from), kDefaultDataClass, packet, what.to, what.at);
  }
  // Takes out what has arrived at a host.
  void receive(std::uint32_t host) {
    std::array<Packet*, 8> burst{};
    for (std::size_t n = 1; n != 0;) {
      n = ports[host].rx(burst);
      for (std::size_t i = 0; i < n; ++i) {
        deliveries.push_back({burst[i]->time, host, burst[i]->digest, burst[i]->ecn});
        pool.free(burst[i]);
      }
    }
  }
  // One event of a link, if one is due before `end`.
  bool step(Picos end = kNever) {
    Picos time{};
    std::uint32_t actor = 0;
    if (!wheel.pop_before(end, time, actor)) return false;
    forwarding.link_fired(actor, time);
    for (const std::uint32_t host : state().hosts.woken()) receive(host);
    state().hosts.clear_woken();
    return true;
  }

  FabricSpec spec;
  Topology topology;
  PacketPool pool;
  EventWheel wheel;
  Forwarding forwarding;
  Slab<HostPort> ports;
  std::uint64_t next_id = 0;
  std::vector<RigDelivery> deliveries;
};

}  // namespace paceline::fabric
