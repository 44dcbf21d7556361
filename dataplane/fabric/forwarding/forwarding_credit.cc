// Credit-based flow control (credits.h). A link that takes part has Link::kCredits and
// Link::kGrants, so that all of this lies on the side ways of the hot path. A class without credits
// is paused like one that the far end has paused. A departure returns credits at its time, so
// every departure of such a fabric is an event.
#include <algorithm>

#include "dataplane/fabric/forwarding/forwarding.h"

namespace paceline::fabric {

namespace {

// A flow-control packet of InfiniBand: 6 bytes (operand, FCTBS, lane, FCCL, checksum) and a symbol
// before and after (section 7.9.4).
constexpr std::uint32_t kUpdateBytes = 8;

}  // namespace

// A packet has begun to leave by `link` at `start`; at a switch, it had arrived by port `ingress`.
void Forwarding::pass_credits(Link& link, std::uint8_t traffic_class, std::uint32_t bytes,
                              std::uint16_t ingress, Picos start) {
  if (!credits_->covers(traffic_class)) return;
  // A class waits for credits from when the wire would be free for it.
  if (!credits_->spend(link.id, traffic_class, bytes)) stall(link, traffic_class, link.busy);
  if (link.egress != Link::kNoEgress) {
    free_credits(switches_[egresses_[link.egress].switch_index], ingress, traffic_class, bytes,
                 start);
  }
}

void Forwarding::stall(Link& link, std::uint8_t traffic_class, Picos since) {
  link.paused = static_cast<std::uint8_t>(link.paused | 1U << traffic_class);
  details_[link.id].paused_since[traffic_class] = since;
}

// A packet that had arrived by this port has left the switch, or is lost there.
void Forwarding::free_credits(const Switch& sw, std::uint16_t port, std::uint8_t traffic_class,
                              std::uint32_t bytes, Picos now) {
  Link& back = links_[sw.port_links[port]];
  if (const auto limit = credits_->release(back.id ^ 1U, traffic_class, bytes)) {
    send_credits(back, traffic_class, *limit, now);
  }
}

// Starts when the wire is free, before anything queued; like a pause frame it joins what is in
// flight right now. What could leave at `now` as well leaves behind it.
void Forwarding::send_credits(Link& back, std::uint8_t traffic_class, std::uint64_t limit,
                              Picos now) {
  if (back.down != 0) return;  // told anew when it comes up
  if (now < now_) ++late_pauses_;
  Packet* update = pool_.alloc();
  update->flags = packet_flag::pfc;
  update->route = kRouteCredit;
  update->digest = limit;
  update->traffic_class = traffic_class;
  update->header_bytes = 0;
  update->payload_bytes = 0;
  update->wire_bytes = kUpdateBytes;
  ++stats_.credit_updates;
  put_on_wire(back, update, later(back.busy, now));
  if (back.leaves()) send_away(back, *update);
  if (back.backlog != 0) reschedule(back);
}

void Forwarding::credits_arrived(const Link& link, Packet* update, Picos now) {
  const std::uint8_t traffic_class = update->traffic_class;
  const std::uint64_t limit = update->digest;
  pool_.free(update);

  Link& back = links_[link.id ^ 1U];
  const auto bit = static_cast<std::uint8_t>(1U << traffic_class);
  if (!credits_->hear(back.id, traffic_class, limit) || (back.paused & bit) == 0) return;
  advance(back, now);  // what leaves at `now` has left
  back.paused = static_cast<std::uint8_t>(back.paused & ~bit);
  LinkDetail& detail = details_[back.id];
  const Picos span = paused_for(detail, traffic_class, now);
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

// Something arrives by a link with credits. A host takes it out of its buffer at once; at a switch
// it stays there until it leaves, which may be at once, or is dropped.
void Forwarding::arrive_granted(const Link& link, Packet* packet, Picos now) {
  if (packet->route == kRouteCredit) {
    credits_arrived(link, packet, now);
    return;
  }
  const std::uint8_t traffic_class = packet->traffic_class;
  if (!credits_->covers(traffic_class)) {
    arrive_shown(link, packet, now);
    return;
  }
  const std::uint32_t bytes = packet->wire_bytes;
  credits_->take_in(link.id, traffic_class, bytes);
  if ((link.to & Link::kToSwitch) == 0) {
    arrive_shown(link, packet, now);
    if (const auto limit = credits_->release(link.id, traffic_class, bytes)) {
      send_credits(links_[link.id ^ 1U], traffic_class, *limit, now);
    }
    return;
  }
  if (packet->route != kRouteLost) packet->ingress = link.to_port;
  arriving_ = packet;
  arrive_shown(link, packet, now);
  const bool dropped = arriving_ == nullptr;
  arriving_ = nullptr;
  if (dropped) {
    free_credits(switches_[link.to & ~Link::kToSwitch], link.to_port, traffic_class, bytes, now);
  }
}

// The link has come up, and so has the one that leads back: both ends count from zero, and the far
// end of the other one says what it has room for.
void Forwarding::restart_credits(Link& link, Picos now) {
  for (std::uint8_t c = 0; c < kTrafficClasses; ++c) {
    if (!credits_->covers(c)) continue;
    credits_->restart_near(link.id, c);
    stall(link, c, now);
    send_credits(link, c, credits_->restart_far(link.id ^ 1U, c), now);
  }
}

// Of every link that is up: what was sent has arrived or is on the wire; what has arrived is held
// or was told to be free, or soon will be; nobody sends more than he was told.
void Forwarding::check_credits(std::string& wrong) const {
  const auto expect = [&wrong](const Link& link, std::uint8_t c, const char* what, bool holds,
                               std::uint64_t left, std::uint64_t right) {
    if (holds) return;
    wrong += "credits of link " + std::to_string(link.id) + " class " + std::to_string(c) + ": " +
             what + ": " + std::to_string(left) + " against " + std::to_string(right) + "\n";
  };
  std::vector<std::array<std::uint64_t, kTrafficClasses>> held(links_.size());
  for (const Egress& egress : egresses_) {
    const Switch& sw = switches_[egress.switch_index];
    for (std::size_t c = 0; c < kTrafficClasses; ++c) {
      for (const Packet* p = egress.queues[c].head; p != nullptr; p = p->next) {
        held[sw.port_links[p->ingress] ^ 1U][c] += credit_blocks(p->wire_bytes);
      }
    }
  }
  for (const Link& link : links_) {
    std::array<std::uint64_t, kTrafficClasses> on_wire{};
    for (const Packet* p = link.head; p != nullptr; p = p->next) {
      if (p->route != kRouteCredit) on_wire[p->traffic_class] += credit_blocks(p->wire_bytes);
    }
    for (std::uint8_t c = 0; c < kTrafficClasses; ++c) {
      if (!credits_->covers(c)) continue;
      const CreditLane& lane = credits_->at(link.id, c);
      expect(link, c, "held", lane.held == held[link.id][c], lane.held, held[link.id][c]);
      expect(link, c, "held, and the buffer", lane.held <= lane.buffer, lane.held, lane.buffer);
      if (link.down != 0) continue;
      const std::uint64_t under_way = lane.sent - lane.received;
      expect(link, c, "sent, not received, and on the wire", under_way == on_wire[c], under_way,
             on_wire[c]);
      expect(link, c, "sent, and the limit", lane.sent <= lane.limit, lane.sent, lane.limit);
      expect(link, c, "limit, and what was told", lane.limit <= lane.told, lane.limit, lane.told);
      // Outstanding and free make up the buffer; what is owed makes the sum, and is never much.
      const std::uint64_t owed = CreditBook::owed(lane);
      expect(link, c, "free and not told", owed < credits_->update_blocks(), owed,
             credits_->update_blocks());
    }
  }
}

}  // namespace paceline::fabric
