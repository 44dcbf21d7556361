// Links that fail, come back and change while packets are under way. Before anything changes, the
// departures that were due are decided under the old state; the agenda acts after all links at its
// time, so departures at T precede the event at T however they are decided.
#include <bit>
#include <cassert>

#include "dataplane/fabric/forwarding/forwarding.h"

namespace paceline::fabric {

void Forwarding::run_agenda(Picos now) {
  now_ = now;
  if (part_ != 0) ++foreign_events_;
  bool reroute = false;
  while (next_agenda_ < agenda_.size() && agenda_[next_agenda_].at <= now) {
    const Agenda& item = agenda_[next_agenda_++];
    if (item.reroute) {
      // What was true when the news set out; a link that fell and rose meanwhile counts as it is.
      failed_[item.event.link] = links_[2 * item.event.link].down != 0;
      reroute = true;
    } else {
      happen(item.event, now);
    }
  }
  if (reroute) topology_.reroute(spec_, failed_);
  if (next_agenda_ < agenda_.size()) {
    wheel_.schedule(first_actor_ + links(), agenda_[next_agenda_].at);
  }
}

void Forwarding::happen(const LinkEvent& event, Picos now) {
  if (event.action == LinkAction::down && links_[2 * event.link].down == 0 &&
      owns_link(2 * event.link)) {
    ++stats_.link_failures;
  }
  for (const std::uint32_t id : {2 * event.link, 2 * event.link + 1}) {
    Link& link = links_[id];
    if (!owns_link(id)) {
      happen_elsewhere(link, event.action);
      continue;
    }
    LinkDetail& detail = details_[id];
    advance(link, now);
    switch (event.action) {
      case LinkAction::down:
        take_down(link, now);
        continue;
      case LinkAction::up:
        bring_up(link, now);
        continue;
      case LinkAction::rate:
        detail.rate = event.rate;
        detail.remainder = 0;
        link.ps_per_byte = picos_per_byte(event.rate);
        break;
      case LinkAction::delay:
        link.delay = event.delay;
        link.impaired |= Link::kVaries;
        break;
      case LinkAction::loss:
        detail.loss = event.probability;
        break;
      case LinkAction::corrupt:
        detail.error_rate = event.probability;
        break;
      case LinkAction::duplicate:
        detail.duplicate = event.probability;
        break;
      case LinkAction::reorder:
        detail.reorder = event.probability;
        break;
    }
    refresh_impairments(link);
    if (link.backlog != 0) reschedule(link);
  }
}

void Forwarding::take_down(Link& link, Picos now) {
  if (link.down != 0) return;
  link.down = 0xFF;
  link.busy = earlier(link.busy, now);  // what was being sent is cut off
  lose_in_flight(link, now);
  forget_pauses(link, now);
  if (!spec_.keep_queued_when_down) lose_queued(link, now);
}

void Forwarding::bring_up(Link& link, Picos now) {
  if (link.down == 0) return;
  link.down = 0;
  link.busy = later(link.busy, now);
  if (credits_ != nullptr) restart_credits(link, now);
  if (link.egress == Link::kNoEgress) {
    const Link& back = links_[link.id ^ 1U];
    assert((back.to & Link::kToSwitch) == 0);
    hosts_.wake(back.to);
    return;
  }
  advance(link, now);
  if (link.backlog != 0) reschedule(link);
}

void Forwarding::lose_in_flight(Link& link, Picos now) {
  while (Packet* packet = link.head) {
    link.head = packet->next;
    if (link.tapped() && packet->route != kRouteCredit) {
      show_drop(link, *packet, Fate::lost, DropReason::link_down, now);
    }
    if (packet->route == kRoutePause || packet->route == kRouteCredit) {
      pool_.free(packet);
    } else if (packet->route == kRouteLost) {
      drop(packet, static_cast<DropReason>(packet->ingress));
    } else {
      drop(packet, DropReason::link_down);
    }
  }
  link.tail = nullptr;
  link.head_time = kNever;
  wheel_.schedule(first_actor_ + link.id, kNever);
  if (link.leaves()) recall(link);
}

void Forwarding::lose_queued(Link& link, Picos now) {
  if (link.backlog == 0) return;
  Egress& egress = egresses_[link.egress];
  Switch& sw = switches_[egress.switch_index];
  egress.integrate(now);
  for (std::uint8_t c = 0; c < kTrafficClasses; ++c) {
    ClassQueue& queue = egress.queues[c];
    while (queue.head != nullptr) {
      Packet* packet = queue.pop();
      const std::uint16_t ingress = packet->ingress;
      const std::uint32_t bytes = packet->wire_bytes;
      egress.queued_bytes -= bytes;
      ++egress.drops;
      sw.buffer.release(ingress, c, bytes);
      if (link.tapped()) show_drop(link, *packet, Fate::never_sent, DropReason::link_down, now);
      drop(packet, DropReason::link_down);
      if (sw.paused_count != 0) consider_resume(sw, ingress, c, now);
      if (credits_ != nullptr && credits_->covers(c)) free_credits(sw, ingress, c, bytes, now);
    }
    if (!dwrr_.empty()) dwrr_[link.egress].emptied(c);
  }
  link.backlog = 0;
  sw.clear_backlogged(egress.port);
}

// The sender on this link forgets that it was paused; the switch it leaves, that it paused whoever
// is at the other end. If its buffer still has reason to, it says so when the next packet comes.
void Forwarding::forget_pauses(Link& link, Picos now) {
  LinkDetail& detail = details_[link.id];
  for (unsigned bits = link.paused; bits != 0; bits &= bits - 1) {
    const Picos span = paused_for(detail, static_cast<std::size_t>(std::countr_zero(bits)), now);
    detail.pause_time += span;
    stats_.pause_time += span;
  }
  link.paused = 0;
  if (link.egress == Link::kNoEgress) return;
  const Egress& egress = egresses_[link.egress];
  Switch& sw = switches_[egress.switch_index];
  std::uint8_t& told = sw.paused_ingress[egress.port];
  sw.paused_count -= static_cast<std::uint32_t>(std::popcount(told));
  if (sw.paused_count == 0) set_exact(sw, spec_.exact_departures);
  told = 0;
}

}  // namespace paceline::fabric
