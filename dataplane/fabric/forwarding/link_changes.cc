#include "dataplane/fabric/forwarding/link_changes.h"

#include <algorithm>
#include <cassert>

namespace paceline::fabric {

namespace {

bool is_of_pauses(LinkAction action) {
  return action == LinkAction::pause || action == LinkAction::resume || action == LinkAction::take;
}

}  // namespace

void LinkChanges::run(Picos now) {
  FabricState& state = forwarding_.state();
  state.wire.set_now(now);
  if (state.wire.boundary().part() != 0) ++state.foreign_events;
  bool reroute = false;
  while (const LinkAgenda::Item* item = agenda_.take(now)) {
    if (!is_of_pauses(item->event.action)) ++happened_;
    if (item->reroute) {
      // Switches learn the state at the time of the notification: a link that failed and came back
      // meanwhile counts as up.
      agenda_.learn(item->event.link, state.wire[2 * item->event.link].down != 0);
      reroute = true;
    } else if (item->event.action == LinkAction::forget) {
      agenda_.forget_before(*item);
    } else {
      happen(item->event, now);
    }
  }
  if (reroute) state.topology.reroute(state.spec, agenda_.failed());
}

void LinkChanges::happen(const LinkEvent& event, Picos now) {
  FabricState& state = forwarding_.state();
  const PartBoundary& boundary = state.wire.boundary();
  if (event.action == LinkAction::down && state.wire[2 * event.link].down == 0 &&
      boundary.owns(2 * event.link)) {
    ++state.stats.link_failures;
  }
  for (const std::uint32_t id : {2 * event.link, 2 * event.link + 1}) {
    if ((event.directions >> (id & 1U) & 1U) == 0) continue;
    Link& link = state.wire[id];
    if (!boundary.owns(id)) {
      happen_elsewhere(link, event.action);
      continue;
    }
    forwarding_.advance(link, now);
    if (event.action == LinkAction::down) {
      take_down(link, now);
    } else if (event.action == LinkAction::up) {
      bring_up(link, now);
    } else if (event.action == LinkAction::pause || event.action == LinkAction::resume) {
      tell(link, event.action == LinkAction::pause, now);
    } else if (event.action == LinkAction::take) {
      take(link, event.rate, now);
    } else {
      change(link, event);
    }
  }
}

void LinkChanges::change(Link& link, const LinkEvent& event) {
  FabricState& state = forwarding_.state();
  if (event.action == LinkAction::rate) {
    state.wire.set_rate(link, event.rate);
  } else if (event.action == LinkAction::delay) {
    link.delay = event.delay;
    link.impaired |= Link::kVaries;
  } else if (event.action == LinkAction::mark_off || event.action == LinkAction::mark_on ||
             event.action == LinkAction::mark_at) {
    if (link.egress == Link::kNoEgress) return;
    state.queues.set_marking(link.egress,
                             event.action == LinkAction::mark_off ? 0.0 : event.factor);
  } else {
    state.impairments.change(link.id, event);
  }
  state.impairments.mark(link);
  if (link.backlog != 0) state.wire.reschedule(link);
}

void LinkChanges::take_down(Link& link, Picos now) {
  if (link.down != 0) return;
  link.down = 0xFF;
  link.busy = earlier(link.busy, now);  // what was being sent is cut off
  lose_in_flight(link, now);
  forget_pauses(link, now);
  if (!forwarding_.state().spec.keep_queued_when_down) lose_queued(link, now);
}

void LinkChanges::bring_up(Link& link, Picos now) {
  if (link.down == 0) return;
  FabricState& state = forwarding_.state();
  link.down = 0;
  link.busy = later(link.busy, now);
  if (state.credits != nullptr) state.credits->restart(link, now);
  if (link.egress == Link::kNoEgress) {
    const Link& back = state.wire[link.id ^ 1U];
    assert((back.to & Link::kToSwitch) == 0);
    state.hosts.wake(back.to);
    return;
  }
  forwarding_.advance_and_reschedule(link, now);
}

void LinkChanges::lose_in_flight(Link& link, Picos now) {
  FabricState& state = forwarding_.state();
  Packet* next = state.wire.take_all(link);
  while (Packet* packet = next) {
    next = packet->next;
    if (link.tapped() && packet->route != kRouteCredit) {
      state.taps.show_drop(link.id, *packet, Fate::lost, DropReason::link_down, now);
    }
    if (packet->route == kRoutePause || packet->route == kRouteCredit) {
      state.pool.free(packet);
    } else if (packet->route == kRouteLost) {
      forwarding_.drop(packet, static_cast<DropReason>(packet->ingress));
    } else {
      forwarding_.drop(packet, DropReason::link_down);
    }
  }
  if (link.leaves()) state.wire.boundary().recall(link.id);
}

void LinkChanges::lose_queued(Link& link, Picos now) {
  if (link.backlog == 0) return;
  FabricState& state = forwarding_.state();
  Egress& egress = state.queues[link.egress];
  Switch& sw = state.switches[egress.switch_index];
  egress.integrate(now);
  for (std::uint8_t c = 0; c < kTrafficClasses; ++c) {
    while (Packet* packet = EgressQueues::lose(egress, c)) {
      const std::uint16_t ingress = packet->ingress;
      const std::uint32_t bytes = packet->wire_bytes;
      sw.buffer.release(ingress, c, bytes);
      if (link.tapped()) {
        state.taps.show_drop(link.id, *packet, Fate::never_sent, DropReason::link_down, now);
      }
      forwarding_.drop(packet, DropReason::link_down);
      if (sw.pauses.active()) forwarding_.resume_if_due(sw, ingress, c, now);
      if (state.credits != nullptr && state.credits->covers(c)) {
        forwarding_.free_credits(sw, ingress, c, bytes, now);
      }
    }
    state.queues.emptied(link.egress, c);
  }
  link.backlog = 0;
  sw.clear_backlogged(egress.port);
}

// The sender on this link forgets that it was paused; its switch forgets that it paused the far
// end. If its buffer still requires a pause, the next packet that arrives causes it.
void LinkChanges::forget_pauses(Link& link, Picos now) {
  FabricState& state = forwarding_.state();
  state.stats.pause_time += state.pauses.end_all(link.id, link.paused, now);
  link.paused = 0;
  if (link.egress == Link::kNoEgress) return;
  const Egress& egress = state.queues[link.egress];
  Switch& sw = state.switches[egress.switch_index];
  sw.pauses.forget(egress.port);
  if (!sw.pauses.active()) state.wire.set_exact(sw.port_links, state.spec.exact_departures);
}

// The host of this link tells the switch.
void LinkChanges::tell(Link& uplink, bool pause, Picos now) {
  FabricState& state = forwarding_.state();
  if (uplink.egress != Link::kNoEgress || uplink.down != 0 || !state.spec.pfc.enabled) return;
  for (std::uint8_t c = 0; c < kTrafficClasses; ++c) {
    if ((state.spec.pfc.lossless_classes >> c & 1U) == 0) continue;
    state.wire.put_control(
        uplink, {kRoutePause, c, state.spec.wire.wire_bytes(64, 0), pause ? 1U : 0U, 0}, now);
  }
}

// A pause is repeated while it lasts: a link that failed meanwhile has forgotten it.
void LinkChanges::take(Link& uplink, Rate rate, Picos now) {
  constexpr double kMostWaiting = 64'000;  // bytes, about what arrives between two looks
  FabricState& state = forwarding_.state();
  Link& back = state.wire[uplink.id ^ 1U];
  if (uplink.egress != Link::kNoEgress || back.egress == Link::kNoEgress) return;
  forwarding_.advance_and_reschedule(back, now - Picos{1});
  const std::uint64_t arrived = state.queues[back.egress].bytes;
  auto at = std::find_if(intakes_.begin(), intakes_.end(),
                         [&](const Intake& one) { return one.uplink == uplink.id; });
  if (at == intakes_.end()) at = intakes_.insert(at, {uplink.id, arrived, 0, now, false});
  const double seconds = static_cast<double>((now - at->at).count) * 1e-12;
  at->waiting = std::max(0.0, at->waiting + static_cast<double>(arrived - at->arrived) -
                                  seconds * static_cast<double>(rate.bps) / 8);
  at->arrived = arrived;
  at->at = now;
  const bool full = rate.bps != 0 && at->waiting > kMostWaiting;
  if (full || at->pauses) tell(uplink, full, now);
  at->pauses = full;
  if (rate.bps == 0) intakes_.erase(at);
}

// The link begins in another part; packets on it are lost, and counted, in that part.
void LinkChanges::happen_elsewhere(Link& link, LinkAction action) {
  if (action == LinkAction::up) link.down = 0;
  if (action != LinkAction::down || link.down != 0) return;
  FabricState& state = forwarding_.state();
  link.down = 0xFF;
  Packet* next = state.wire.take_all(link);
  while (Packet* packet = next) {
    next = packet->next;
    state.pool.free(packet);
  }
}

}  // namespace paceline::fabric
