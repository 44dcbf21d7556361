// The hot path: injection, departure, arrival. A hop runs through link_fired once.
#include "dataplane/fabric/forwarding/forwarding.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "dataplane/base/prefetch.h"
#include "dataplane/wire/int_record.h"
#include "dataplane/wire/opcodes.h"
#include "dataplane/wire/patch.h"
#include "dataplane/wire/trim.h"

namespace paceline::fabric {

namespace {

constexpr std::size_t kEtherTypeAt = 12;
constexpr std::size_t kSourceAddressAt = 14 + 12;
constexpr std::size_t kDestinationAddressAt = 14 + 16;
constexpr std::size_t kSourcePortAt = 14 + 20;
constexpr std::size_t kNeeded = kSourcePortAt + 2;
constexpr std::size_t kSourceAddressV6At = 14 + 8;
constexpr std::size_t kDestinationAddressV6At = 14 + 24;
constexpr std::size_t kSourcePortV6At = 14 + 40;
constexpr std::size_t kNeededV6 = kSourcePortV6At + 2;
constexpr std::uint8_t kFirstControlOpcode = 0xC0;

std::uint32_t load16(const Packet& packet, std::size_t at) {
  return std::to_integer<std::uint32_t>(packet.header[at]) << 8 |
         std::to_integer<std::uint32_t>(packet.header[at + 1]);
}
std::uint32_t load32(const Packet& packet, std::size_t at) {
  return load16(packet, at) << 16 | load16(packet, at + 2);
}
std::uint64_t load64(const Packet& packet, std::size_t at) {
  return std::uint64_t{load32(packet, at)} << 32 | load32(packet, at + 4);
}

std::uint32_t entropy_of(std::uint32_t from, std::uint32_t to, std::uint32_t source_port) {
  return static_cast<std::uint32_t>(
      mix64((std::uint64_t{from} << 32 | to) + (std::uint64_t{source_port} << 20)));
}

// All that tells flows apart, whatever the protocol: addresses and ports of IPv4 and IPv6, MAC
// addresses of anything else. Not what changes from packet to packet of a flow.
std::uint32_t flow_hash(const Packet& packet) {
  constexpr std::size_t kEthernet = 14;
  std::uint64_t hash = 0;
  const auto add = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to && i < packet.header_bytes; ++i) {
      hash = mix64(hash ^ std::to_integer<std::uint64_t>(packet.header[i]));
    }
  };
  add(0, kEthernet);
  if (packet.bth_offset >= kEthernet + 28) {  // addresses, then UDP right before
    add(static_cast<std::size_t>(packet.bth_offset) - 16, packet.bth_offset - 6U);
  }
  return static_cast<std::uint32_t>(hash);
}

}  // namespace

bool Forwarding::exact(const Link& link) {
  return link.egress != Link::kNoEgress &&
         (link.exact || (link.impaired & (Link::kReorders | Link::kVaries)) != 0);
}

// The wheel has popped this link's entry: its head in flight arrives, or (exact departures) a
// queued packet leaves, or nothing is due.
void Forwarding::link_fired(std::uint32_t link_id, Picos now) {
  assert(link_id <= links_.size() && now >= now_);
  if (link_id == links_.size()) [[unlikely]] {
    run_agenda(now);
    return;
  }
  now_ = now;
  Link& link = links_[link_id];
  Packet* arrived = nullptr;
  if (link.head_time <= now) {
    arrived = link.head;
    link.head = arrived->next;
    link.head_time = link.head == nullptr ? kNever : link.head->time;
  }
  if (link.backlog == 0) {
    wheel_.schedule(first_actor_ + link_id, link.head_time);
  } else if (exact(link)) {
    advance(link, now);
    reschedule(link);
  } else {
    // While something is in flight, departures can wait for its arrival: they are decided then,
    // each from the queue as it stood at its own time.
    if (link.head == nullptr) advance(link, now);
    wheel_.schedule(first_actor_ + link_id, link.head_time);
  }
  if (arrived == nullptr) {
    ++idle_events_;
    return;
  }
  if (link.notable != 0) [[unlikely]] {
    arrive_notable(link, arrived, now);
  } else {
    arrive(link, arrived, now);
  }
}

void Forwarding::arrive_first(std::uint32_t link_id) {
  Link& link = links_[link_id];
  Packet* const packet = link.head;
  const Picos now = link.head_time;
  now_ = now;
  link.head = packet->next;
  link.head_time = link.head == nullptr ? kNever : link.head->time;
  if (link.notable != 0) [[unlikely]] {
    arrive_notable(link, packet, now);
  } else {
    arrive(link, packet, now);
  }
}

void Forwarding::inject(Link& link, Packet* packet, Picos now) {
  packet->wire_bytes = spec_.wire.wire_bytes(packet->frame_bytes(), packet->payload_bytes);
  if ((packet->flags & packet_flag::telemetry) != 0) [[unlikely]]
    packet->wire_bytes += wire::kIntHeaderBytes;
  packet->route = kRouteNone;
  if (packet->header_bytes >= kNeeded && load16(*packet, kEtherTypeAt) == 0x0800) {
    const std::uint32_t to = load32(*packet, kDestinationAddressAt);
    const std::uint32_t host = to - spec_.subnet_base - 1;
    packet->entropy =
        entropy_of(load32(*packet, kSourceAddressAt), to, load16(*packet, kSourcePortAt));
    if (host < spec_.hosts) packet->route = host;
  } else if (packet->header_bytes >= kNeededV6 && load16(*packet, kEtherTypeAt) == 0x86DD) {
    // Among hosts of the fabric the last 32 bits tell all.
    const std::uint32_t to = load32(*packet, kDestinationAddressV6At + 12);
    const std::uint32_t host = to - spec_.subnet_base - 1;
    packet->entropy =
        entropy_of(load32(*packet, kSourceAddressV6At + 12), to, load16(*packet, kSourcePortV6At));
    if (host < spec_.hosts && load64(*packet, kDestinationAddressV6At) == spec_.prefix_v6 &&
        load32(*packet, kDestinationAddressV6At + 8) == 0) {
      packet->route = host;
    }
  }
  if (moves_answers_) [[unlikely]]
    packet->traffic_class = class_in_switches(*packet);
  ++stats_.injected_packets;
  stats_.injected_bytes += packet->wire_bytes;
  if (spec_.drop_control_ppm != 0 && packet->bth_offset != 0) {
    const auto opcode = std::to_integer<std::uint8_t>(packet->header[packet->bth_offset]);
    const bool droppable = opcode >= kFirstControlOpcode &&
                           (spec_.control_opcodes >> (opcode - kFirstControlOpcode) & 1U) != 0;
    if (droppable && control_loss_.below(1'000'000) < spec_.drop_control_ppm) {
      packet->route = kRouteLost;
      packet->ingress = static_cast<std::uint16_t>(DropReason::control_loss);
    }
  }
  transmit(link, packet, now);
}

void Forwarding::inject_to(Link& link, std::uint8_t traffic_class, Packet* packet, std::uint32_t to,
                           Picos now) {
  // A frame without a transport header has no ICRC, which frame_bytes() counts.
  const std::uint32_t frame = packet->frame_bytes() - (packet->bth_offset == 0 ? 4U : 0U);
  packet->wire_bytes = spec_.wire.wire_bytes(frame, packet->payload_bytes);
  packet->traffic_class = traffic_class;
  if (moves_answers_) packet->traffic_class = class_in_switches(*packet);
  packet->entropy = flow_hash(*packet);
  packet->route = to < spec_.hosts ? to : kRouteNone;
  ++stats_.injected_packets;
  stats_.injected_bytes += packet->wire_bytes;
  transmit(link, packet, later(now, link.busy));
}

// In which class switches queue a packet, where that is not the one in which its host sent it.
std::uint8_t Forwarding::class_in_switches(const Packet& packet) const {
  if (packet.traffic_class != kControlClass || packet.bth_offset == 0) return packet.traffic_class;
  switch (static_cast<wire::Opcode>(packet.header[packet.bth_offset])) {
    case wire::Opcode::rc_acknowledge:
    case wire::Opcode::rc_atomic_acknowledge:
    case wire::Opcode::xack:
      return spec_.ack_class;
    case wire::Opcode::cnp:
      return spec_.cnp_class;
    default:
      return packet.traffic_class;
  }
}

[[gnu::always_inline]] inline void Forwarding::launch(Link& link, Packet* packet, Picos start,
                                                      Picos late) {
  if (link.ps_per_byte != 0) [[likely]] {
    link.busy =
        start +
        Picos{static_cast<std::int64_t>(std::uint64_t{packet->wire_bytes} * link.ps_per_byte)};
  } else {
    link.busy = start + details_[link.id].serialize(packet->wire_bytes, start == link.busy);
  }
  packet->time = link.busy + link.delay + late;
  packet->next = nullptr;
  if (link.head == nullptr) {
    link.head = packet;
    link.head_time = packet->time;
    wheel_.schedule(first_actor_ + link.id, packet->time);
  } else if ((link.impaired & (Link::kReorders | Link::kVaries)) != 0) [[unlikely]] {
    insert_in_flight(link, packet);
    return;
  } else {
    link.tail->next = packet;
  }
  link.tail = packet;
}

// Puts a packet on the wire at `start`, which is not before link.busy.
void Forwarding::transmit(Link& link, Packet* packet, Picos start) {
  ++stats_.hops;
  stats_.hop_bytes += packet->wire_bytes;
  if (link.impaired != 0) [[unlikely]] {
    transmit_impaired(link, packet, start);
    return;
  }
  launch(link, packet, start, Picos{0});
}

// late: how much later than its propagation delay says the packet arrives. The caller sees to links
// that leave this part of the fabric.
void Forwarding::put_on_wire(Link& link, Packet* packet, Picos start, Picos late) {
  launch(link, packet, start, late);
}

// Decides all departures up to and including `now`. Afterwards no queued packet could leave at
// `now`.
void Forwarding::advance(Link& link, Picos now) {
  if (link.backlog == 0) return;
  Egress& egress = egresses_[link.egress];
  while (link.busy <= now && link.eligible() != 0) depart(link, egress);
}

// Strict classes first, the highest of them; what they leave is shared by weight.
std::uint8_t Forwarding::choose_class(unsigned eligible, const Egress& egress,
                                      std::uint32_t index) {
  const unsigned strict = eligible & strict_classes_;
  if (strict != 0) [[likely]]
    return static_cast<std::uint8_t>(std::bit_width(strict) - 1);
  return dwrr_[index].pick(eligible, egress.queues, quantum_);
}

// The first packet of a class that is not paused leaves at link.busy. Between two looks no queue
// changed, so the choice is the one that would have been made at that time.
void Forwarding::depart(Link& link, Egress& egress) {
  const Picos start = link.busy;
  const std::uint8_t traffic_class = choose_class(link.eligible(), egress, link.egress);
  ClassQueue& queue = egress.queues[traffic_class];
  egress.integrate(start);
  Packet* packet = queue.pop();
  if (queue.head != nullptr) {  // the next to go: it may have waited for long
    __builtin_prefetch(queue.head);
    __builtin_prefetch(&queue.head->header);
  }
  egress.queued_bytes -= packet->wire_bytes;
  ++egress.packets;
  egress.bytes += packet->wire_bytes;
  Switch& sw = switches_[egress.switch_index];
  if (queue.head == nullptr) {
    link.backlog = static_cast<std::uint8_t>(link.backlog & ~(1U << traffic_class));
    if (link.backlog == 0) sw.clear_backlogged(egress.port);
    if (!dwrr_.empty()) [[unlikely]]
      dwrr_[link.egress].emptied(traffic_class);
  }
  if (queue.bytes > ecn_kmin_ && !mark_at_enqueue_) mark(egress, packet, queue.bytes);
  const std::uint16_t ingress = packet->ingress;
  sw.buffer.release(ingress, traffic_class, packet->wire_bytes);
  transmit(link, packet, start);
  if (sw.paused_count != 0) [[unlikely]]
    consider_resume(sw, ingress, traffic_class, start);
}

// queue_bytes > ecn_kmin_. One draw per packet between kmin and kmax that can be marked.
void Forwarding::mark(Egress& egress, Packet* packet, std::uint64_t queue_bytes) {
  if (packet->ecn != Ecn::ect0 && packet->ecn != Ecn::ect1) return;
  const Curve& curve = curves_[egress.curve];
  if (queue_bytes <= curve.kmin) return;
  if (queue_bytes <= curve.kmax &&
      egress.marking.uniform() >= static_cast<double>(queue_bytes - curve.kmin) * curve.slope) {
    return;
  }
  packet->ecn = Ecn::ce;
  wire::patch_ecn(packet->header_view(), Ecn::ce);
  ++egress.marked;
  ++stats_.marked_packets;
}

// False: there is nothing to cut off, or the class is not one of data.
bool Forwarding::trim(Egress& egress, Packet* packet) {
  if (packet->payload_bytes == 0 || packet->bth_offset == 0 ||
      packet->traffic_class >= spec_.trim.to_class ||
      !wire::patch_trimmed(packet->header_view(), spec_.trim.to_class)) {
    return false;
  }
  const std::uint32_t before = packet->wire_bytes;
  if (packet->payload_kind == PayloadKind::lent) pool_.drop_loan(*packet);
  packet->payload_bytes = 0;
  packet->payload_kind = PayloadKind::none;
  packet->flags |= packet_flag::trimmed;
  packet->traffic_class = spec_.trim.to_class;
  packet->wire_bytes = std::min(before, spec_.wire.wire_bytes(packet->frame_bytes(), 0));
  ++egress.trimmed;
  ++stats_.trimmed_packets;
  stats_.trimmed_bytes += before - packet->wire_bytes;
  return true;
}

void Forwarding::arrive(const Link& link, Packet* packet, Picos now) {
  if (packet->route >= spec_.hosts) [[unlikely]] {
    arrive_special(link, packet, now);
    return;
  }
  if ((link.to & Link::kToSwitch) == 0) {
    if (packet->route != link.to) [[unlikely]] {  // two hosts back to back, and not for this one
      drop(packet, DropReason::no_route);
      return;
    }
    ++stats_.delivered_packets;
    stats_.delivered_bytes += packet->wire_bytes;
    hosts_.deliver(link.to, packet);
    return;
  }
  const std::uint32_t index = link.to & ~Link::kToSwitch;
  const NextHop hop = topology_.next_hop(index, packet->route);
  if (hop.count == 0) [[unlikely]] {
    drop(packet, DropReason::no_route);
    return;
  }
  const std::uint32_t out = hop.count == 1 ? hop.first : choose_link(index, hop, *packet);
  enqueue(switches_[index], links_[out], link, packet, now);
}

// One of several. Sprayed packets are counted and drawn per switch in the order of arrival there,
// which is that of (time, link).
std::uint32_t Forwarding::choose_link(std::uint32_t switch_index, NextHop hop,
                                      const Packet& packet) {
  if (spec_.load_balance == LoadBalance::ecmp) [[likely]]
    return topology_.hashed(switch_index, hop, packet.entropy);
  if (spec_.load_balance == LoadBalance::spray) {
    std::uint32_t& turn = spray_next_[topology_.first_link(hop)];
    return topology_.member(hop, turn++ % hop.count);
  }
  const std::uint64_t draw = splitmix64(switches_[switch_index].spray) >> 32;
  return topology_.member(hop, static_cast<std::uint32_t>((draw * hop.count) >> 32));
}

void Forwarding::enqueue(Switch& sw, Link& out, const Link& in, Packet* packet, Picos now) {
  Egress& egress = egresses_[out.egress];
  advance(out, now);
  const std::uint64_t depth = egress.queued_bytes;
  (egress.last_hop ? last_hop_depth_ : core_depth_).record(depth);
  unsigned class_bit = 1U << packet->traffic_class;
  ClassQueue* queue = &egress.queues[packet->traffic_class];
  if (mark_at_enqueue_ && queue->bytes > ecn_kmin_) mark(egress, packet, queue->bytes);
  // Looked at before anything that a full queue brings about: what is left is a packet of another
  // class, and it alone counts in the buffer. A packet that leaves at once finds no queue, but for
  // one that is paused.
  if (queue->bytes > trim_above_ && (out.busy > now || (out.held() & class_bit) != 0) &&
      trim(egress, packet)) [[unlikely]] {
    class_bit = 1U << packet->traffic_class;
    queue = &egress.queues[packet->traffic_class];
  }

  // Nothing that may leave is queued now (advance), so on a free wire this packet leaves at once
  // and never occupies the buffer.
  if (out.busy <= now && (out.held() & class_bit) == 0) {
    ++egress.packets;
    egress.bytes += packet->wire_bytes;
    transmit(out, packet, now);
    if (out.backlog != 0 && exact(out)) [[unlikely]]
      reschedule(out);
    return;
  }

  if (out.down != 0 && !spec_.keep_queued_when_down) [[unlikely]] {
    ++egress.drops;
    if (out.tapped()) show_drop(out, *packet, Fate::never_sent, DropReason::link_down, now);
    drop(packet, DropReason::link_down);
    return;
  }
  packet->ingress = in.to_port;
  if (!admit(sw, egress, packet, now)) [[unlikely]] {
    ++egress.drops;
    return;
  }
  egress.integrate(now);
  egress.queued_bytes = depth + packet->wire_bytes;
  if (egress.queued_bytes > egress.max_bytes) egress.max_bytes = egress.queued_bytes;
  queue->push(packet);
  if (out.backlog == 0) sw.mark_backlogged(egress.port);
  out.backlog = static_cast<std::uint8_t>(out.backlog | class_bit);
  if (sw.buffer.used() >= sw.use_step_bytes) [[unlikely]]
    track_buffer_use(sw, now);
  if (sw.buffer.lossless(packet->traffic_class) &&
      sw.buffer.must_pause(in.to_port, packet->traffic_class)) [[unlikely]] {
    consider_pause(sw, in.to_port, packet->traffic_class, now);
  }
  if (out.exact || (out.impaired & ~Link::kHarmless) != 0) [[unlikely]]
    reschedule(out);
}

}  // namespace paceline::fabric
