// The emulated fabric: host ports, links, output-queued switches with shared buffer, ECN and PFC.
//
// Departures are lazy: a port decides them only when its state is needed (a packet is enqueued, the
// last packet in flight on its wire arrives, a pause or resume takes effect, a caller reads it), so
// that a hop costs one event. The result is that of deciding each at its time; docs/performance.md
// argues why and tests/unit/fabric/lazy_departures_test.cc checks it. Ties: departures at T precede
// enqueues at T; links act in the order of their numbers.
//
// One thread. The caller owns the clock: it pops the event wheel and calls link_fired for the
// actors that are links, then polls the hosts in woken_hosts().
//
// Network builds the fabric from its spec and is its interface. The state is in the classes of the
// sub-rooms; forwarding/fabric_state.h says who owns what.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/base/containers/slab.h"
#include "dataplane/base/numbers/histogram.h"
#include "dataplane/fabric/sweep/fabric_ahead.h"
#include "dataplane/fabric/sweep/fabric_sweep.h"
#include "dataplane/fabric/topology/division.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/topology.h"
#include "dataplane/fabric/wire/crossing.h"
#include "dataplane/fabric/wire/host_queues.h"
#include "dataplane/fabric/wire/statistics.h"
#include "dataplane/port/capture/capture.h"
#include "dataplane/port/packet.h"
#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"

namespace paceline::fabric {

class Forwarding;
class HostPort;
class LinkChanges;
class PlanePort;
struct FabricState;

class Network {
 public:
  // Directed link l is actor first_actor_id + l of the wheel, the agenda of link events (if there
  // are or can be any) the one behind the last link; the wheel must have room for
  // actors_needed(spec) actors from there and outlive the network. Throws std::invalid_argument
  // when the spec has errors other than unreachable host pairs (check() tells all beforehand).
  // `memory` holds what packets touch, and must outlive the network, too.
  Network(const FabricSpec& spec, EventWheel& wheel, std::uint32_t first_actor_id,
          std::pmr::memory_resource& memory = *std::pmr::new_delete_resource());
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  static std::uint32_t actors_needed(const FabricSpec& spec) {
    return static_cast<std::uint32_t>(2 * spec.links.size() + (has_agenda(spec) ? 1 : 0));
  }

  std::uint32_t hosts() const { return spec_.hosts; }
  std::uint32_t links() const { return static_cast<std::uint32_t>(2 * spec_.links.size()); }
  const FabricSpec& spec() const { return spec_; }
  const Topology& topology() const { return topology_; }
  PacketPool& pool() { return pool_; }

  // Lives as long as the network. Calls at time t on a host's port: after all link events before t.
  Port& host_port(std::uint32_t host);

  // Replaces the port's tx for a caller that stands in for a host and knows the destinations: puts
  // a packet on the host's uplink, to host `to`. A packet to a number that is not a host's is
  // dropped on its way. True: it was taken. False: not before send_ready_at(), which is kNever
  // while the class is paused or the link down.
  bool send(std::uint32_t host, std::uint8_t traffic_class, Packet* packet, std::uint32_t to,
            Picos now);
  Picos send_ready_at(std::uint32_t host, std::uint8_t traffic_class);

  // The wheel popped this actor of the network (0-based, first_actor_id subtracted) at `now`.
  void link_fired(std::uint32_t link, Picos now);

  // More events of links, none before the time that the wheel has come to. Throws
  // std::invalid_argument if the spec is not changeable or has no such link. May allocate.
  void change(std::span<const LinkEvent> events);
  // Events of links so far, without the pauses that hosts tell switches.
  std::uint64_t link_events() const;

  // Hosts that received a packet, or one of whose classes was resumed, since clear_woken(); each at
  // most once, in the order in which it happened.
  std::span<const std::uint32_t> woken_hosts() const { return hosts_->woken(); }
  void clear_woken() { hosts_->clear_woken(); }

  // Prefetching for link_fired, and the work of a window of time, node by node.
  const FabricAhead& ahead() const { return ahead_; }
  FabricSweep& sweep() { return sweep_; }
  const FabricSweep& sweep() const { return sweep_; }

  // Brings every port up to `now` and closes time-weighted statistics there. Everything may go on
  // afterwards.
  void finish(Picos now);

  const NetworkStats& stats() const;
  // Directed link l; only links that leave a switch have an egress (else nullopt). Exact at the
  // time of the last finish().
  std::optional<EgressStats> egress_stats(std::uint32_t link) const;
  // Queue length in bytes found by each packet arriving at a switch port towards a host (last hop),
  // and at the other switch ports.
  const Histogram& last_hop_depth() const;
  const Histogram& core_depth() const;
  // Deepest queue of any port towards a host.
  std::uint64_t last_hop_max_bytes() const;

  // How long a directed link (of a host or a switch) was paused, summed over classes.
  Picos link_pause_time(std::uint32_t link) const;
  // The same, with what the pauses in force have lasted until `now`.
  Picos link_pause_time(std::uint32_t link, Picos now) const;
  // Packets of data that left by this link in another class than their own.
  std::uint64_t reclassed_packets(std::uint32_t link) const;
  // stats().pause_time with what the pauses in force have lasted until `now`, for time series.
  Picos pause_time(Picos now) const;

  // A look at one egress queue at `now`, for time series. Changes no result.
  std::uint64_t queue_bytes(std::uint32_t link, Picos now);

  // Shows `tap` what crosses link `link` of the spec from now on, in both directions, and what was
  // dropped from the queues in front of it. Changes no result. One tap per link, which must outlive
  // the network's use.
  void tap(std::uint32_t link, LinkTap& tap);
  // No more, from now on. Between events.
  void untap(std::uint32_t link);

  // One part of a fabric that several networks work on, each on a thread of its own
  // (docs/architecture.md, "Parallel virtual time"). Every network is built from the whole spec;
  // after divide() this one holds the truth about the switches and hosts of `part` and about the
  // links that leave them. Before the first event; `division` must outlive the network.
  void divide(const Division& division, std::uint32_t part);
  // Lists that take packets to other parts from now on, one for each part.
  void send_to(std::span<std::vector<Crossing>> lists);
  // Decides what leaves for other parts up to `until`, so that all of it is in the lists. Every
  // event up to then has happened. Returns when, as things stand, the next packet leaves for
  // another part: that need not be an event. kNever: none is queued.
  Picos decide_leaving(Picos until);
  // When the first packet arrives that was sent away since the last call; kNever when none was.
  Picos first_sent_away();
  // A packet from another part: it arrives at its time, which must not be in the past.
  void take_in(std::span<const Crossing> packets);
  // Events of links that enter this part, or of link events, which another part counts as well.
  std::uint64_t foreign_events() const;
  // Calls of link_fired by which nothing arrived: departures that are events because a port is
  // paused, or the agenda. Their number depends on when state is read, not on what happens.
  std::uint64_t idle_events() const;
  // After a run: makes this network the whole, by taking over what `other` holds the truth about.
  // Afterwards both may only be read.
  void gather(const Network& other);

  // Conservation: injected = delivered + dropped + in flight + queued, in packets and bytes; every
  // buffer counter equals what its queues hold; PFC state is consistent. Empty when all holds, else
  // what is wrong. Walks everything: for tests and the end of a run.
  std::string check_conservation() const;

 private:
  static bool has_agenda(const FabricSpec& spec) { return spec.changeable || !spec.events.empty(); }

  FabricSpec spec_;
  Topology topology_;
  EventWheel& wheel_;
  std::uint32_t first_actor_;
  std::uint32_t agenda_;  // the actor behind the last link
  PacketPool pool_;
  std::unique_ptr<Forwarding> forwarding_;
  FabricState* state_;  // of forwarding_, as is hosts_
  HostQueues* hosts_;
  std::unique_ptr<LinkChanges> changes_;
  std::unique_ptr<Slab<HostPort>> ports_;
  std::unique_ptr<Slab<PlanePort>> plane_ports_;  // of hosts with several ports
  FabricAhead ahead_;
  FabricSweep sweep_;
};

}  // namespace paceline::fabric
