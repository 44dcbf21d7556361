// Moves packets: puts them on links, receives them, queues them in switches and lets them leave.
// The order of steps is here; the state belongs to the classes of FabricState, which return the
// actions that they need.
//
// Buffer counters that lazy departures have not brought up to date only over-estimate, and every
// condition on them is monotone (shared_buffer.h): a "no" from stale counters is a "no"; before a
// "yes" counts, the switch is caught up and asked again.
#pragma once

#include <cstdint>
#include <memory_resource>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/fabric/forwarding/fabric_state.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/topology.h"
#include "dataplane/fabric/wire/host_intake.h"
#include "dataplane/port/packet.h"
#include "dataplane/port/packet_pool.h"

namespace paceline::fabric {

class Forwarding {
 public:
  // All arguments must outlive this. Directed link l is actor first_actor + l of the wheel.
  Forwarding(const FabricSpec& spec, Topology& topology, PacketPool& pool, EventWheel& wheel,
             std::uint32_t first_actor, std::pmr::memory_resource& memory);

  FabricState& state() { return state_; }
  const FabricState& state() const { return state_; }

  // The wheel has popped this link's entry: its first packet arrives, or (exact departures) a
  // queued one leaves, or nothing is due.
  void link_fired(std::uint32_t link, Picos now);
  // The first packet in flight on a link arrives. The link's entry in the wheel is the caller's.
  void arrive_first(std::uint32_t link);
  // A host's packet goes on its uplink at `now`, which must not be before link.busy.
  void inject(Link& link, Packet* packet, Picos now);
  // The same in two steps, for a caller that knows more about the path than the packet's address
  // tells: it may change Packet::route in between.
  void prepare(Packet& packet) { intake_.prepare(packet); }
  void inject_prepared(Link& link, Packet* packet, Picos now);
  // The packet is lost at its host: the uplink is down.
  void lose_at_host(const Link& link, Packet* packet, Picos now);
  // As inject() to host `to`, whatever the packet's address, as soon as the wire is free. A packet
  // to a number that is not a host's is dropped on its way.
  void inject_to(Link& link, std::uint8_t traffic_class, Packet* packet, std::uint32_t to,
                 Picos now);

  // Decides all departures up to and including `now`. Afterwards no queued packet could leave at
  // `now`.
  void advance(Link& link, Picos now);
  // The same, and puts the link's next event into the wheel.
  void advance_and_reschedule(Link& link, Picos now);
  // Decides every departure of the switch up to `now`, port after port.
  void advance_switch(const Switch& sw, Picos now);

  // The packet is on no link and in no queue: it is counted as lost, and freed.
  void drop(Packet* packet, DropReason reason);
  // A packet that came by this port has left the switch, or is lost there: pauses, then credits
  // that this allows are sent.
  void resume_if_due(Switch& sw, std::uint16_t port, std::uint8_t traffic_class, Picos now);
  void free_credits(const Switch& sw, std::uint16_t port, std::uint8_t traffic_class,
                    std::uint32_t bytes, Picos now);

 private:
  void transmit(Link& link, Packet* packet, Picos start);
  void transmit_aside(Link& link, Packet* packet, Picos start);
  void depart(Link& link, Egress& egress);

  void arrive(const Link& link, Packet* packet, Picos now);
  void arrive_notable(const Link& link, Packet* packet, Picos now);
  void arrive_granted(const Link& link, Packet* packet, Picos now);
  void arrive_shown(const Link& link, Packet* packet, Picos now);
  void arrive_special(const Link& link, Packet* packet, Picos now);
  void pause_arrived(const Link& link, Packet* frame, Picos now);
  void credits_arrived(const Link& link, Packet* update, Picos now);
  void go_on(Link& link, std::uint8_t traffic_class, Picos now);

  void enqueue(Switch& sw, Link& out, const Link& in, Packet* packet, Picos now);
  void notify_if_due(const Egress& egress, const Link& in, const Packet& packet, Picos now);
  bool admit(Switch& sw, Egress& egress, Packet* packet, Picos now);
  void refuse(Egress& egress, Packet* packet, DropReason reason, Picos now);
  // Called when a packet has joined a queue of the switch and there is more to do than usual: the
  // switch samples such packets, or its buffer is fuller than ever before.
  [[gnu::cold, gnu::noinline]] void look_at_buffer(Switch& sw, const Link& out, const Link& in,
                                                   const Packet& packet, Picos now);
  void pause_if_due(Switch& sw, std::uint16_t port, std::uint8_t traffic_class, Picos now);
  void send_pause(const Switch& sw, std::uint16_t port, std::uint8_t traffic_class, bool pause,
                  Picos now);

  FabricState state_;
  HostIntake intake_;
  const Packet* arriving_ = nullptr;  // by a link with credits; forgotten when it is dropped
};

}  // namespace paceline::fabric
