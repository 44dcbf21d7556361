// Admission to the shared buffer, pause and resume. Counters that lazy departures have not brought
// up to date only over-estimate, and every condition here is monotone in them (shared_buffer.h): a
// "no" from stale counters is a "no"; before a "yes" counts, the switch is caught up and asked
// again.
#include <bit>
#include <cassert>

#include "dataplane/fabric/forwarding/forwarding.h"

namespace paceline::fabric {

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

// The counters say that this ingress port and class must pause its upstream.
void Forwarding::consider_pause(Switch& sw, std::uint16_t port, std::uint8_t traffic_class,
                                Picos now) {
  if (credits_ != nullptr) return;  // what lossy classes leave of the threshold does not concern it
  const auto bit = static_cast<std::uint8_t>(1U << traffic_class);
  if ((sw.paused_ingress[port] & bit) != 0) return;
  advance_switch(sw, now);
  if (!sw.buffer.must_pause(port, traffic_class)) return;
  sw.paused_ingress[port] = static_cast<std::uint8_t>(sw.paused_ingress[port] | bit);
  const bool first = sw.paused_count++ == 0;
  send_pause(sw, port, traffic_class, true, now);
  // A resume is due at the very departure that allows it: from here on departures of this switch
  // are events of their own.
  if (first) {
    set_exact(sw, true);
    for (const std::uint32_t link : sw.port_links) {
      if (links_[link].backlog != 0) reschedule(links_[link]);
    }
  }
}

// A packet of this ingress port and class has left at `now`.
void Forwarding::consider_resume(Switch& sw, std::uint16_t port, std::uint8_t traffic_class,
                                 Picos now) {
  const auto bit = static_cast<std::uint8_t>(1U << traffic_class);
  if ((sw.paused_ingress[port] & bit) == 0 || !sw.buffer.may_resume(port, traffic_class)) return;
  sw.paused_ingress[port] = static_cast<std::uint8_t>(sw.paused_ingress[port] & ~bit);
  if (--sw.paused_count == 0) set_exact(sw, spec_.exact_departures);
  send_pause(sw, port, traffic_class, false, now);
}

// Highest use so far, in steps, so that few packets need a look at the whole switch.
void Forwarding::track_buffer_use(Switch& sw, Picos now) {
  advance_switch(sw, now);
  while (sw.buffer.used() >= sw.use_step_bytes) {
    if (sw.use_step_bytes > stats_.buffer_used_max) stats_.buffer_used_max = sw.use_step_bytes;
    sw.use_step_bytes += kBufferUseStep;
  }
}

// Decides every departure of the switch up to `now`, port after port.
void Forwarding::advance_switch(Switch& sw, Picos now) {
  sw.over_backlogged([&](std::uint32_t id) { advance(links_[id], now); });
}

void Forwarding::set_exact(const Switch& sw, bool exact) {
  for (const std::uint32_t link : sw.port_links) links_[link].exact = exact;
}

// When something happens on this link next: its head arrives, or with exact departures a packet
// leaves.
void Forwarding::reschedule(Link& link) {
  if (held_) return;
  Picos next = link.head_time;
  if (link.eligible() != 0 && exact(link)) next = earlier(next, link.busy);
  wheel_.schedule(first_actor_ + link.id, next);
}

void Forwarding::wait_for_first(const Link& link) {
  wheel_.schedule(first_actor_ + link.id, link.head_time);
}

// A pause frame starts when the wire towards the upstream is free, before anything queued; as
// nothing can overtake it, it joins what is in flight right now.
void Forwarding::send_pause(Switch& sw, std::uint16_t port, std::uint8_t traffic_class, bool pause,
                            Picos now) {
  if (now < now_) ++late_pauses_;
  Link& back = links_[sw.port_links[port]];
  advance(back, now);
  Packet* frame = pool_.alloc();
  frame->flags = packet_flag::pfc;
  frame->route = kRoutePause;
  frame->entropy = pause ? 1 : 0;
  frame->traffic_class = traffic_class;
  frame->header_bytes = 0;
  frame->payload_bytes = 0;
  frame->wire_bytes = spec_.wire.wire_bytes(64, 0);
  ++(pause ? stats_.pause_frames : stats_.resume_frames);
  put_on_wire(back, frame, later(back.busy, now));
  if (back.leaves()) send_away(back, *frame);
  if (back.backlog != 0) reschedule(back);
}

void Forwarding::pause_arrived(const Link& link, Packet* frame, Picos now) {
  const std::uint8_t traffic_class = frame->traffic_class;
  const bool pause = frame->entropy != 0;
  pool_.free(frame);

  Link& back = links_[link.id ^ 1U];
  LinkDetail& detail = details_[back.id];
  const auto bit = static_cast<std::uint8_t>(1U << traffic_class);
  if (((back.paused & bit) != 0) == pause) return;
  advance(back, now);  // what leaves at `now` has left
  if (pause) {
    back.paused = static_cast<std::uint8_t>(back.paused | bit);
    detail.paused_since[traffic_class] = now;
    // Its entry in the wheel may be for a departure that is now held back; it then finds nothing
    // due.
    return;
  }
  back.paused = static_cast<std::uint8_t>(back.paused & ~bit);
  const Picos span = now - detail.paused_since[traffic_class];
  detail.pause_time += span;
  stats_.pause_time += span;
  if (back.egress == Link::kNoEgress) {
    hosts_.wake(links_[link.id].to);
    return;
  }
  if (back.busy < now && back.eligible() != 0) back.busy = now;  // what was held back leaves now
  advance(back, now);
  if (back.backlog != 0) reschedule(back);
}

// For how long this class has been held back. What has no credits is, once its wire is free.
Picos Forwarding::paused_for(const LinkDetail& detail, std::size_t traffic_class, Picos now) {
  return later(now - detail.paused_since[traffic_class], Picos{0});
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

// No room for a packet that would have left by this egress port.
void Forwarding::refuse(const Egress& egress, Packet* packet, DropReason reason, Picos now) {
  const Link& link = links_[egress.link];
  if (link.tapped()) show_drop(link, *packet, Fate::never_sent, reason, now);
  drop(packet, reason);
}

void Forwarding::drop(Packet* packet, DropReason reason) {
  if (packet == observed_) observed_drop_ = to_string(reason);
  if (packet == arriving_) arriving_ = nullptr;
  ++stats_.drops[static_cast<std::size_t>(reason)];
  stats_.dropped_bytes[static_cast<std::size_t>(reason)] += packet->wire_bytes;
  pool_.free(packet);
}

}  // namespace paceline::fabric
