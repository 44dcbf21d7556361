// A fabric in parts. A link that leaves its part works as any other: what is on it lies in its list
// until the time of arrival, so its events and its losses are those of an undivided fabric. A copy
// of each packet goes to the part where the link ends, into the list of its link of the same
// number, and that one arrives.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "dataplane/fabric/forwarding/forwarding.h"

namespace paceline::fabric {

void Forwarding::divide(const Division& division, std::uint32_t part) {
  division_ = &division;
  part_ = part;
  for (std::uint32_t id = 0; id < links_.size(); ++id) {
    if (!division.crosses(spec_, id)) continue;
    const bool leaves = owns_link(id);
    if (!leaves && division.part_to(spec_, id) != part) continue;
    links_[id].notable =
        static_cast<std::uint8_t>(links_[id].notable | (leaves ? Link::kLeaves : Link::kEnters));
    if (!leaves) continue;
    links_[id].impaired = static_cast<std::uint8_t>(links_[id].impaired | Link::kCopies);
    leaving_.push_back(id);
  }
}

void Forwarding::arrive_notable(const Link& link, Packet* packet, Picos now) {
  if (link.leaves()) {  // a copy of it arrives in the part where the link ends
    pool_.free(packet);
    return;
  }
  if ((link.notable & Link::kEnters) != 0 && !link.tapped()) ++foreign_events_;
  if ((link.notable & Link::kGrants) != 0) {
    arrive_granted(link, packet, now);
  } else {
    arrive_shown(link, packet, now);
  }
}

void Forwarding::arrive_shown(const Link& link, Packet* packet, Picos now) {
  if (link.tapped()) {
    arrive_tapped(link, packet, now);
  } else {
    arrive(link, packet, now);
  }
}

void Forwarding::send_away(const Link& link, const Packet& packet) {
  first_away_ = earlier(first_away_, packet.time);
  Crossing& crossing = away_[division_->part_to(spec_, link.id)].emplace_back(packet, link.id);
  if (uses_tail(packet)) [[unlikely]]
    std::memcpy(crossing.tail.data(), tail_of(packet), kPacketTailBytes);
}

// What this link has sent away and nobody has taken in is lost.
void Forwarding::recall(const Link& link) {
  std::erase_if(away_[division_->part_to(spec_, link.id)],
                [&link](const Crossing& crossing) { return crossing.link == link.id; });
}

// A look at every queue in front of such a link: see queue_bytes.
Picos Forwarding::decide_leaving(Picos until) {
  Picos next = kNever;
  for (const std::uint32_t id : leaving_) {
    Link& link = links_[id];
    if (link.backlog == 0) continue;
    const Picos before = link.busy;
    advance(link, until);
    if (link.busy != before && link.backlog != 0) reschedule(link);
    if (link.eligible() != 0) next = earlier(next, link.busy);
  }
  return next;
}

Picos Forwarding::first_sent_away() { return std::exchange(first_away_, kNever); }

// Arrivals of one link lie apart, and mostly come in their order; on links that reorder they need
// not.
void Forwarding::take_in(std::span<const Crossing> packets) {
  for (const Crossing& crossing : packets) {
    Link& link = links_[crossing.link];
    Packet* packet = pool_.copy_of(crossing.packet);
    if (link.head == nullptr || packet->time < link.head_time) {
      packet->next = link.head;
      if (link.head == nullptr) link.tail = packet;
      link.head = packet;
      link.head_time = packet->time;
      wheel_.schedule(first_actor_ + link.id, packet->time);
      continue;
    }
    Packet* before = packet->time > link.tail->time ? link.tail : link.head;
    while (before->next != nullptr && before->next->time < packet->time) before = before->next;
    packet->next = before->next;
    before->next = packet;
    if (packet->next == nullptr) link.tail = packet;
  }
}

// A link that begins in another part: what is on it is lost there, and counted there.
void Forwarding::happen_elsewhere(Link& link, LinkAction action) {
  if (action == LinkAction::up) link.down = 0;
  if (action != LinkAction::down || link.down != 0) return;
  link.down = 0xFF;
  while (Packet* packet = link.head) {
    link.head = packet->next;
    pool_.free(packet);
  }
  link.tail = nullptr;
  link.head_time = kNever;
  wheel_.schedule(first_actor_ + link.id, kNever);
}

void Forwarding::gather(const Forwarding& other) {
  assert(division_ != nullptr && division_ == other.division_);
  const std::vector<std::uint32_t>& part_of = division_->part_of_node;
  for (std::uint32_t id = 0; id < links_.size(); ++id) {
    if (other.owns_link(id)) {
      links_[id] = other.links_[id];
      details_[id] = other.details_[id];
      if (links_[id].egress != Link::kNoEgress) {
        egresses_[links_[id].egress] = other.egresses_[links_[id].egress];
        if (!dwrr_.empty()) dwrr_[links_[id].egress] = other.dwrr_[links_[id].egress];
      }
    }
    if (credits_ != nullptr && other.owns_link(id)) {
      credits_->take_near(*other.credits_, id);
      credits_->take_far(*other.credits_, id ^ 1U);
    }
    links_[id].notable =
        static_cast<std::uint8_t>(links_[id].notable & (Link::kTapped | Link::kGrants));
    links_[id].impaired = static_cast<std::uint8_t>(links_[id].impaired & ~Link::kCopies);
  }
  for (std::uint32_t i = 0; i < switches_.size(); ++i) {
    if (part_of[spec_.hosts + i] == other.part_) switches_[i] = other.switches_[i];
  }
  for (std::uint32_t host = 0; host < spec_.hosts; ++host) {
    if (part_of[host] != other.part_) continue;
    hosts_.take_over(other.hosts_, host);
  }
  stats_ += other.stats_;
  last_hop_depth_.merge(other.last_hop_depth_);
  core_depth_.merge(other.core_depth_);
  late_pauses_ += other.late_pauses_;
  now_ = later(now_, other.now_);
}

}  // namespace paceline::fabric
