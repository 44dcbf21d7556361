#include "dataplane/fabric/wire/wire.h"

namespace paceline::fabric {

Wire::Wire(const FabricSpec& spec, PacketPool& pool, EventWheel& wheel, std::uint32_t first_actor,
           std::pmr::memory_resource& memory)
    : pool_(pool),
      wheel_(wheel),
      first_actor_(first_actor),
      links_(2 * spec.links.size(), &memory),
      rates_(links_.size()),
      boundary_(spec) {
  for (std::uint32_t id = 0; id < links_.size(); ++id) {
    const LinkSpec& from = spec.links[id / 2];
    Link& link = links_[id];
    link.id = id;
    link.delay = from.delay;
    const std::uint32_t to = (id & 1U) == 0 ? from.b : from.a;
    link.to = to < spec.hosts ? to : (to - spec.hosts) | Link::kToSwitch;
    set_rate(link, from.rate);
  }
}

void Wire::set_rate(Link& link, Rate rate) {
  rates_[link.id] = {rate, 0};
  link.ps_per_byte = picos_per_byte(rate);
}

void Wire::reschedule(const Link& link) {
  if (held_) return;
  Picos next = link.head_time;
  if (link.eligible() != 0 && exact(link)) next = earlier(next, link.busy);
  schedule(link, next);
}

void Wire::put_control(Link& link, const ControlFrame& frame, Picos now) {
  if (now < now_) ++late_frames_;
  Packet* packet = pool_.alloc();
  packet->flags = packet_flag::pfc;
  packet->route = frame.route;
  packet->entropy = frame.entropy;
  packet->digest = frame.digest;
  packet->traffic_class = frame.traffic_class;
  packet->header_bytes = 0;
  packet->payload_bytes = 0;
  packet->wire_bytes = frame.wire_bytes;
  put(link, packet, later(link.busy, now), Picos{0});
  if (link.leaves()) boundary_.send(link.id, *packet);
  if (link.backlog != 0) reschedule(link);
}

// A packet is in flight. Inserts by arrival, at least a picosecond apart; packets that are not
// delayed on purpose keep their order on a link that does not reorder.
void Wire::insert(Link& link, Packet* packet) {
  if ((link.impaired & Link::kReorders) == 0 || packet->time > link.tail->time) {
    packet->time = later(packet->time, link.tail->time + Picos{1});
    link.tail->next = packet;
    link.tail = packet;
    return;
  }
  Packet** place = &link.head;
  while (*place != nullptr && (*place)->time <= packet->time) {
    if ((*place)->time == packet->time) packet->time += Picos{1};
    place = &(*place)->next;
  }
  packet->next = *place;
  *place = packet;
  if (packet->next == nullptr) link.tail = packet;
  if (link.head == packet) {
    link.head_time = packet->time;
    reschedule(link);
  }
}

// Arrivals of one link lie apart, and mostly come in their order; on links that reorder they need
// not.
void Wire::take_in(Link& link, const Packet& copy) {
  Packet* packet = pool_.copy_of(copy);
  if (link.head == nullptr || packet->time < link.head_time) {
    packet->next = link.head;
    if (link.head == nullptr) link.tail = packet;
    link.head = packet;
    link.head_time = packet->time;
    schedule(link, packet->time);
    return;
  }
  Packet* before = packet->time > link.tail->time ? link.tail : link.head;
  while (before->next != nullptr && before->next->time < packet->time) before = before->next;
  packet->next = before->next;
  before->next = packet;
  if (packet->next == nullptr) link.tail = packet;
}

Packet* Wire::take_all(Link& link) {
  Packet* const first = link.head;
  link.head = nullptr;
  link.tail = nullptr;
  link.head_time = kNever;
  schedule(link, kNever);
  return first;
}

void Wire::take_over(const Wire& other, std::uint32_t link) {
  links_[link] = other.links_[link];
  rates_[link] = other.rates_[link];
}

void Wire::gather(const Wire& other) {
  late_frames_ += other.late_frames_;
  now_ = later(now_, other.now_);
}

}  // namespace paceline::fabric
