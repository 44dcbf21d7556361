#include "dataplane/fabric/forwarding/forwarding.h"

#include <algorithm>
#include <cassert>

#include "dataplane/wire/extensions/control.h"
#include "dataplane/wire/extensions/int_record.h"
#include "dataplane/wire/headers/dscp.h"
#include "dataplane/wire/packet/icrc.h"
#include "dataplane/wire/packet/patch.h"

namespace paceline::fabric {

namespace {

// The packet leaves by this link at `start`, and is counted already. Like marks, the record shows
// the queue as it stood at that time, however late the departure was decided.
void record(const Egress& egress, Rate rate, Packet& packet, Picos start) {
  IntHop hop;
  hop.rate_mbps = static_cast<std::uint32_t>(rate.bps / 1'000'000);
  hop.queue_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(egress.queued_bytes, ~0U));
  hop.sent_bytes = static_cast<std::uint32_t>(egress.bytes - packet.wire_bytes);
  hop.time_ns = static_cast<std::uint32_t>(to_nanos(start).count);
  wire::store_int_record(tail_of(packet) + packet.records * wire::kIntRecordBytes, hop);
  packet.records = (packet.records + 1U) & 7U;
  packet.path = (packet.path * 5U + (egress.link * 0x9E37'79B1U >> 19)) & 0x1FFFU;
}

// A notice to the source of the sampled packet. A switch has no address, so it comes from the
// packet's destination.
void build_notice(const wire::ParsedPacket& sampled, const NoticeMessage& message, Packet& out) {
  wire::FlowAddressing back;
  back.source_mac = sampled.destination_mac;
  back.destination_mac = sampled.source_mac;
  back.source = sampled.destination;
  back.destination = sampled.source;
  back.udp_source_port = sampled.udp_source_port;
  back.dscp = wire::kDefaultDscpMap.dscp(kControlClass);
  back.ecn = Ecn::not_ect;
  back.pkey = sampled.pkey;
  if (sampled.has_vlan) back.vlan_tci = sampled.vlan_tci;
  const wire::HeaderTemplate header = wire::make_header_template(back);
  out.header_bytes = static_cast<std::uint16_t>(
      wire::build_control(header, wire::HeaderBuffer{out.header}, Psn{}, message));
  out.bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  out.payload_bytes = 0;
  out.payload_kind = PayloadKind::none;
  out.digest = 0;
  out.traffic_class = kControlClass;
  out.ecn = Ecn::not_ect;
  out.icrc = wire::icrc(out.header_view(), header.l3_offset, {});
}

}  // namespace

Forwarding::Forwarding(const FabricSpec& spec, Topology& topology, PacketPool& pool,
                       EventWheel& wheel, std::uint32_t first_actor,
                       std::pmr::memory_resource& memory)
    : state_(spec, topology, pool, wheel, first_actor, memory), intake_(spec) {}

void Forwarding::link_fired(std::uint32_t link_id, Picos now) {
  Wire& wire = state_.wire;
  assert(link_id < wire.size() && now >= wire.now());
  wire.set_now(now);
  Link& link = wire[link_id];
  Packet* const arrived = link.head_time <= now ? Wire::take_first(link) : nullptr;
  if (link.backlog == 0) {
    wire.wait_for_first(link);
  } else if (Wire::exact(link)) {
    advance(link, now);
    wire.reschedule(link);
  } else {
    // While a packet is in flight, departures can wait for its arrival: they are decided then, each
    // from the queue as it stood at its own time.
    if (link.head == nullptr) advance(link, now);
    wire.wait_for_first(link);
  }
  if (arrived == nullptr) {
    ++state_.idle_events;
    return;
  }
  if (link.notable != 0) [[unlikely]] {
    arrive_notable(link, arrived, now);
  } else {
    arrive(link, arrived, now);
  }
}

void Forwarding::arrive_first(std::uint32_t link_id) {
  Link& link = state_.wire[link_id];
  const Picos now = link.head_time;
  state_.wire.set_now(now);
  Packet* const packet = Wire::take_first(link);
  if (link.notable != 0) [[unlikely]] {
    arrive_notable(link, packet, now);
  } else {
    arrive(link, packet, now);
  }
}

void Forwarding::inject(Link& link, Packet* packet, Picos now) {
  prepare(*packet);
  inject_prepared(link, packet, now);
}

void Forwarding::inject_prepared(Link& link, Packet* packet, Picos now) {
  ++state_.stats.injected_packets;
  state_.stats.injected_bytes += packet->wire_bytes;
  transmit(link, packet, now);
}

void Forwarding::lose_at_host(const Link& link, Packet* packet, Picos now) {
  prepare(*packet);
  ++state_.stats.injected_packets;
  state_.stats.injected_bytes += packet->wire_bytes;
  if (link.tapped()) {
    state_.taps.show_drop(link.id, *packet, Fate::never_sent, DropReason::link_down, now);
  }
  drop(packet, DropReason::link_down);
}

void Forwarding::inject_to(Link& link, std::uint8_t traffic_class, Packet* packet, std::uint32_t to,
                           Picos now) {
  intake_.prepare_for(*packet, traffic_class, to);
  ++state_.stats.injected_packets;
  state_.stats.injected_bytes += packet->wire_bytes;
  transmit(link, packet, later(now, link.busy));
}

// Puts a packet on the wire at `start`, which is not before link.busy.
void Forwarding::transmit(Link& link, Packet* packet, Picos start) {
  ++state_.stats.hops;
  state_.stats.hop_bytes += packet->wire_bytes;
  if (link.impaired != 0) [[unlikely]] {
    transmit_aside(link, packet, start);
    return;
  }
  state_.wire.put(link, packet, start, Picos{0});
}

// Transmits on a link that loses, damages, doubles or delays packets, ends in another part of the
// fabric, passes credits, or records what it carries. A lost packet still takes its time on the
// wire; it is dropped where it would have arrived.
void Forwarding::transmit_aside(Link& link, Packet* packet, Picos start) {
  const std::uint16_t ingress = packet->ingress;  // a lost packet forgets it
  if ((packet->flags & packet_flag::telemetry) != 0 && link.egress != Link::kNoEgress &&
      packet->records != kIntHops) {
    record(state_.queues[link.egress], state_.wire.rate(link.id), *packet, start);
  }
  const Impairments::Drawn drawn = state_.impairments.draw(link.id);
  if (drawn.traffic_class != kTrafficClasses && packet->payload_bytes != 0) {
    packet->traffic_class = drawn.traffic_class;
    wire::patch_dscp(packet->header_view(), wire::kDefaultDscpMap.dscp(drawn.traffic_class));
    state_.impairments.count_reclassed(link.id);
  }
  if (drawn.lost && packet->route != kRouteLost) {
    packet->route = kRouteLost;
    packet->ingress = static_cast<std::uint16_t>(DropReason::link_loss);
  }
  if (drawn.corrupt) {
    if ((packet->flags & packet_flag::corrupt) == 0) ++state_.stats.corrupted_packets;
    packet->flags |= packet_flag::corrupt;
  }
  if (drawn.late.count != 0) ++state_.stats.reordered_packets;
  state_.wire.put(link, packet, start, drawn.late);
  if (link.leaves()) state_.wire.boundary().send(link.id, *packet);
  if ((link.impaired & Link::kCredits) != 0 && state_.credits->covers(packet->traffic_class)) {
    state_.credits->spend(link, packet->traffic_class, packet->wire_bytes);
    if (link.egress != Link::kNoEgress) {
      free_credits(state_.switches[state_.queues[link.egress].switch_index], ingress,
                   packet->traffic_class, packet->wire_bytes, start);
    }
  }
  if (!drawn.duplicate) return;
  Packet* copy = state_.pool.copy_of(*packet);
  copy->flags |= packet_flag::duplicate;
  ++state_.stats.hops;
  state_.stats.hop_bytes += copy->wire_bytes;
  ++state_.stats.duplicated_packets;
  state_.stats.duplicated_bytes += copy->wire_bytes;
  state_.wire.put(link, copy, link.busy, Picos{0});
  if (link.leaves()) state_.wire.boundary().send(link.id, *copy);
}

void Forwarding::advance(Link& link, Picos now) {
  if (link.backlog == 0) return;
  Egress& egress = state_.queues[link.egress];
  while (link.busy <= now && link.eligible() != 0) depart(link, egress);
}

void Forwarding::advance_and_reschedule(Link& link, Picos now) {
  advance(link, now);
  if (link.backlog != 0) state_.wire.reschedule(link);
}

void Forwarding::advance_switch(const Switch& sw, Picos now) {
  sw.over_backlogged([&](std::uint32_t id) { advance(state_.wire[id], now); });
}

// The first packet of a class that is not paused leaves at link.busy. Between two looks no queue
// changed, so the choice is the one that would have been made at that time.
void Forwarding::depart(Link& link, Egress& egress) {
  const Picos start = link.busy;
  const std::uint8_t traffic_class = state_.queues.choose(link.egress, link.eligible());
  Packet* packet = state_.queues.pop(egress, traffic_class, start);
  Switch& sw = state_.switches[egress.switch_index];
  if (egress.queues[traffic_class].head == nullptr) {
    link.backlog = static_cast<std::uint8_t>(link.backlog & ~(1U << traffic_class));
    if (link.backlog == 0) sw.clear_backlogged(egress.port);
    state_.queues.emptied(link.egress, traffic_class);
  }
  const std::uint16_t ingress = packet->ingress;
  sw.buffer.release(ingress, traffic_class, packet->wire_bytes);
  transmit(link, packet, start);
  if (sw.pauses.active()) [[unlikely]]
    resume_if_due(sw, ingress, traffic_class, start);
}

void Forwarding::arrive(const Link& link, Packet* packet, Picos now) {
  if (packet->route >= state_.host_count) [[unlikely]] {
    arrive_special(link, packet, now);
    return;
  }
  if ((link.to & Link::kToSwitch) == 0) {
    if (packet->route != link.to) [[unlikely]] {  // two hosts back to back; it is for another host
      drop(packet, DropReason::no_route);
      return;
    }
    ++state_.stats.delivered_packets;
    state_.stats.delivered_bytes += packet->wire_bytes;
    state_.hosts.deliver(link.to, packet);
    return;
  }
  const std::uint32_t index = link.to & ~Link::kToSwitch;
  const NextHop hop = state_.topology.next_hop(index, packet->route);
  if (hop.count == 0) [[unlikely]] {
    drop(packet, DropReason::no_route);
    return;
  }
  const std::uint32_t out = hop.count == 1
                                ? hop.first
                                : state_.paths.choose(state_.topology, index, hop, packet->entropy);
  enqueue(state_.switches[index], state_.wire[out], link, packet, now);
}

void Forwarding::arrive_notable(const Link& link, Packet* packet, Picos now) {
  if (link.leaves()) {  // a copy of it arrives in the part where the link ends
    state_.pool.free(packet);
    return;
  }
  if ((link.notable & Link::kEnters) != 0 && !link.tapped()) ++state_.foreign_events;
  if ((link.notable & Link::kGrants) != 0) {
    arrive_granted(link, packet, now);
  } else {
    arrive_shown(link, packet, now);
  }
}

// Arrival by a link with credits. A host takes a packet out of its buffer at once. At a switch the
// packet stays there until it leaves, which may be at once, or is dropped.
void Forwarding::arrive_granted(const Link& link, Packet* packet, Picos now) {
  if (packet->route == kRouteCredit) {
    credits_arrived(link, packet, now);
    return;
  }
  const std::uint8_t traffic_class = packet->traffic_class;
  if (!state_.credits->covers(traffic_class)) {
    arrive_shown(link, packet, now);
    return;
  }
  const std::uint32_t bytes = packet->wire_bytes;
  state_.credits->arrived(link, traffic_class, bytes);
  if ((link.to & Link::kToSwitch) == 0) {
    arrive_shown(link, packet, now);
    state_.credits->released(state_.wire[link.id ^ 1U], traffic_class, bytes, now);
    return;
  }
  if (packet->route != kRouteLost) packet->ingress = link.to_port;
  arriving_ = packet;
  arrive_shown(link, packet, now);
  const bool dropped = arriving_ == nullptr;
  arriving_ = nullptr;
  if (dropped) {
    free_credits(state_.switches[link.to & ~Link::kToSwitch], link.to_port, traffic_class, bytes,
                 now);
  }
}

void Forwarding::arrive_shown(const Link& link, Packet* packet, Picos now) {
  if (!link.tapped()) {
    arrive(link, packet, now);
    return;
  }
  const bool lost = packet->route == kRouteLost;
  state_.taps.show(link.id, *packet, now);
  arrive(link, packet, now);
  state_.taps.settle(link.id, lost);
}

void Forwarding::arrive_special(const Link& link, Packet* packet, Picos now) {
  if (packet->route == kRoutePause) {
    pause_arrived(link, packet, now);
  } else if (packet->route == kRouteLost) {
    drop(packet, static_cast<DropReason>(packet->ingress));
  } else {
    drop(packet, DropReason::no_route);
  }
}

void Forwarding::pause_arrived(const Link& link, Packet* frame, Picos now) {
  const std::uint8_t traffic_class = frame->traffic_class;
  const bool pause = frame->entropy != 0;
  state_.pool.free(frame);

  Link& back = state_.wire[link.id ^ 1U];
  if ((back.paused >> traffic_class & 1U) == (pause ? 1U : 0U)) return;
  if (!pause) {
    go_on(back, traffic_class, now);
    return;
  }
  advance(back, now);  // what leaves at `now` has left
  // Its entry in the wheel may be for a departure that is now held back; it then finds nothing due.
  back.paused = static_cast<std::uint8_t>(back.paused | 1U << traffic_class);
  state_.pauses.begin(back.id, traffic_class, now);
}

void Forwarding::credits_arrived(const Link& link, Packet* update, Picos now) {
  const std::uint8_t traffic_class = update->traffic_class;
  const std::uint64_t limit = update->digest;
  state_.pool.free(update);
  Link& back = state_.wire[link.id ^ 1U];
  if (state_.credits->heard(back, traffic_class, limit)) go_on(back, traffic_class, now);
}

// A class of this link that was held back may send again.
void Forwarding::go_on(Link& link, std::uint8_t traffic_class, Picos now) {
  advance(link, now);  // what leaves at `now` has left
  link.paused = static_cast<std::uint8_t>(link.paused & ~(1U << traffic_class));
  state_.stats.pause_time += state_.pauses.end(link.id, traffic_class, now);
  if (link.egress == Link::kNoEgress) {
    state_.hosts.wake(state_.wire[link.id ^ 1U].to);
    return;
  }
  if (link.busy < now && link.eligible() != 0) link.busy = now;  // what was held back leaves now
  advance_and_reschedule(link, now);
}

void Forwarding::enqueue(Switch& sw, Link& out, const Link& in, Packet* packet, Picos now) {
  EgressQueues& queues = state_.queues;
  Egress& egress = queues[out.egress];
  advance(out, now);
  ClassQueue* queue = &egress.queues[packet->traffic_class];
  unsigned class_bit = 1U << packet->traffic_class;
  queues.found_by(egress, *queue, packet);
  // Trimming comes before anything else that a full queue causes: what is left is a packet of
  // another class, and only that packet counts in the buffer. A packet that leaves at once finds no
  // queue, unless its class is paused.
  if (queues.above_trim_threshold(*queue) && (out.busy > now || (out.held() & class_bit) != 0) &&
      queues.trim(egress, packet)) [[unlikely]] {
    class_bit = 1U << packet->traffic_class;
    queue = &egress.queues[packet->traffic_class];
  }

  // Nothing that may leave is queued now (advance), so on a free wire this packet leaves at once
  // and never occupies the buffer.
  if (out.busy <= now && (out.held() & class_bit) == 0) {
    EgressQueues::pass(egress, *packet);
    transmit(out, packet, now);
    if (out.backlog != 0 && Wire::exact(out)) [[unlikely]]
      state_.wire.reschedule(out);
    return;
  }

  if (out.down != 0 && !state_.spec.keep_queued_when_down) [[unlikely]] {
    refuse(egress, packet, DropReason::link_down, now);
    return;
  }
  packet->ingress = in.to_port;
  if (!admit(sw, egress, packet, now)) [[unlikely]]
    return;
  EgressQueues::push(egress, *queue, packet, now);
  if (out.backlog == 0) sw.mark_backlogged(egress.port);
  out.backlog = static_cast<std::uint8_t>(out.backlog | class_bit);
  if (sw.buffer.used() >= sw.look_from_bytes) [[unlikely]]
    look_at_buffer(sw, out, in, *packet, now);
  if (sw.buffer.lossless(packet->traffic_class) &&
      sw.buffer.must_pause(in.to_port, packet->traffic_class)) [[unlikely]] {
    pause_if_due(sw, in.to_port, packet->traffic_class, now);
  }
  if (out.exact || (out.impaired & ~Link::kHarmless) != 0) [[unlikely]]
    state_.wire.reschedule(out);
}

// The packet has joined this queue. If it is sampled there and the queue is too long, or about to
// be, its source is told: the notice continues as if it had come by the same link, ahead of data.
void Forwarding::notify_if_due(const Egress& egress, const Link& in, const Packet& packet,
                               Picos now) {
  NoticeMessage message;
  const bool sampled =
      state_.points->sample(state_.wire[egress.link].egress, packet.traffic_class,
                            packet.wire_bytes, egress.queues[packet.traffic_class].bytes, message);
  if (!sampled || message.feedback == 0 || packet.ecn != Ecn::ect1) return;
  wire::ParsedPacket parsed;
  if (wire::parse_headers(packet.header_view(), packet.payload_bytes, {false, false}, parsed) !=
      wire::ParseError::ok) {
    return;
  }
  message.dest_qpn = parsed.dest_qpn;
  Packet* const notice = state_.pool.alloc();
  if (notice == nullptr) return;
  build_notice(parsed, message, *notice);
  intake_.prepare(*notice);
  // The source is addressed by the plane by which the packet came.
  const std::uint32_t nics = state_.spec.nics();
  if (notice->route < nics) notice->route += packet.route / nics * nics;
  ++state_.stats.notices;
  ++state_.stats.injected_packets;
  state_.stats.injected_bytes += notice->wire_bytes;
  arrive(in, notice, now);
}

// Finds room for a packet and charges it; else drops it. Its egress port is up to date.
bool Forwarding::admit(Switch& sw, Egress& egress, Packet* packet, Picos now) {
  using Place = SharedBuffer::Place;
  SharedBuffer& buffer = sw.buffer;
  const std::uint8_t traffic_class = packet->traffic_class;
  const std::uint16_t port = packet->ingress;
  const std::uint32_t size = packet->wire_bytes;
  if (buffer.lossless(traffic_class)) {
    Place place = buffer.place_lossless(port, traffic_class, size);
    if (place != Place::buffer) {
      advance_switch(sw, now);
      place = buffer.place_lossless(port, traffic_class, size);
      if (place == Place::none) {
        refuse(egress, packet, DropReason::headroom_exhausted, now);
        return false;
      }
    }
    buffer.charge(port, traffic_class, size, place);
    return true;
  }
  const ClassQueue& queue = egress.queues[traffic_class];
  if (!buffer.admits_lossy(egress.port, size, queue.bytes)) {
    advance_switch(sw, now);
    if (!buffer.admits_lossy(egress.port, size, queue.bytes)) {
      refuse(egress, packet, DropReason::buffer_full, now);
      return false;
    }
  }
  buffer.charge(port, traffic_class, size, Place::buffer);
  return true;
}

// A packet that would have left by this egress port is not queued there.
void Forwarding::refuse(Egress& egress, Packet* packet, DropReason reason, Picos now) {
  ++egress.drops;
  if (state_.wire[egress.link].tapped()) {
    state_.taps.show_drop(egress.link, *packet, Fate::never_sent, reason, now);
  }
  drop(packet, reason);
}

void Forwarding::drop(Packet* packet, DropReason reason) {
  state_.taps.dropped(*packet, reason);
  if (packet == arriving_) arriving_ = nullptr;
  ++state_.stats.drops[static_cast<std::size_t>(reason)];
  state_.stats.dropped_bytes[static_cast<std::size_t>(reason)] += packet->wire_bytes;
  state_.pool.free(packet);
}

// Records the highest use so far, in steps, so that few packets need a look at the whole switch.
void Forwarding::look_at_buffer(Switch& sw, const Link& out, const Link& in, const Packet& packet,
                                Picos now) {
  if (state_.points != nullptr) notify_if_due(state_.queues[out.egress], in, packet, now);
  if (sw.buffer.used() < sw.use_step_bytes) return;
  advance_switch(sw, now);
  while (sw.buffer.used() >= sw.use_step_bytes) {
    state_.stats.buffer_used_max = std::max(state_.stats.buffer_used_max, sw.use_step_bytes);
    sw.use_step_bytes += kBufferUseStep;
  }
  if (state_.points == nullptr) sw.look_from_bytes = sw.use_step_bytes;
}

// The counters say that this ingress port and class must pause its upstream.
void Forwarding::pause_if_due(Switch& sw, std::uint16_t port, std::uint8_t traffic_class,
                              Picos now) {
  // With credits, the rest of the threshold that lossy classes leave does not matter.
  if (state_.credits != nullptr || sw.pauses.told(port, traffic_class)) return;
  advance_switch(sw, now);
  const bool first = !sw.pauses.active();
  if (!sw.pauses.pause(sw.buffer, port, traffic_class)) return;
  send_pause(sw, port, traffic_class, true, now);
  if (!first) return;
  // A resume is due at the very departure that allows it: from here on departures of this switch
  // are events of their own.
  state_.wire.set_exact(sw.port_links, true);
  for (const std::uint32_t link : sw.port_links) {
    if (state_.wire[link].backlog != 0) state_.wire.reschedule(state_.wire[link]);
  }
}

void Forwarding::resume_if_due(Switch& sw, std::uint16_t port, std::uint8_t traffic_class,
                               Picos now) {
  if (!sw.pauses.resume(sw.buffer, port, traffic_class)) return;
  if (!sw.pauses.active()) state_.wire.set_exact(sw.port_links, state_.spec.exact_departures);
  send_pause(sw, port, traffic_class, false, now);
}

void Forwarding::send_pause(const Switch& sw, std::uint16_t port, std::uint8_t traffic_class,
                            bool pause, Picos now) {
  Link& back = state_.wire[sw.port_links[port]];
  advance(back, now);
  ++(pause ? state_.stats.pause_frames : state_.stats.resume_frames);
  state_.wire.put_control(
      back, {kRoutePause, traffic_class, state_.spec.wire.wire_bytes(64, 0), pause ? 1U : 0U, 0},
      now);
}

void Forwarding::free_credits(const Switch& sw, std::uint16_t port, std::uint8_t traffic_class,
                              std::uint32_t bytes, Picos now) {
  state_.credits->released(state_.wire[sw.port_links[port]], traffic_class, bytes, now);
}

}  // namespace paceline::fabric
