// The directed links: what is on each wire, when it arrives, and the links' entries in the event
// wheel. Only the first packet in flight on a link is in the wheel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/base/units.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/wire/link.h"
#include "dataplane/fabric/wire/part_boundary.h"
#include "dataplane/port/packet.h"
#include "dataplane/port/packet_pool.h"

namespace paceline::fabric {

// A frame between the two ends of a link, a pause or an update of credits. No host sees it.
struct ControlFrame {
  std::uint32_t route = 0;  // kRoutePause or kRouteCredit
  std::uint8_t traffic_class = 0;
  std::uint32_t wire_bytes = 0;
  std::uint32_t entropy = 0;
  std::uint64_t digest = 0;
};

class Wire {
 public:
  // Link l is actor first_actor + l of the wheel. All must outlive this.
  Wire(const FabricSpec& spec, PacketPool& pool, EventWheel& wheel, std::uint32_t first_actor,
       std::pmr::memory_resource& memory);

  std::uint32_t size() const { return static_cast<std::uint32_t>(links_.size()); }
  Link& operator[](std::uint32_t id) { return links_[id]; }
  const Link& operator[](std::uint32_t id) const { return links_[id]; }
  std::span<Link> all() { return links_; }
  std::span<const Link> all() const { return links_; }
  PartBoundary& boundary() { return boundary_; }
  const PartBoundary& boundary() const { return boundary_; }

  // Puts a packet on the wire at `start`, which is not before link.busy. late: by how much it
  // arrives later than its propagation delay says. The caller sees to links that leave the part.
  [[gnu::always_inline]] void put(Link& link, Packet* packet, Picos start, Picos late) {
    if (link.ps_per_byte != 0) [[likely]] {
      link.busy =
          start +
          Picos{static_cast<std::int64_t>(std::uint64_t{packet->wire_bytes} * link.ps_per_byte)};
    } else {
      link.busy = start + rates_[link.id].serialize(packet->wire_bytes, start == link.busy);
    }
    packet->time = link.busy + link.delay + late;
    packet->next = nullptr;
    if (link.head == nullptr) {
      link.head = packet;
      link.head_time = packet->time;
      schedule(link, packet->time);
    } else if ((link.impaired & (Link::kReorders | Link::kVaries)) != 0) [[unlikely]] {
      insert(link, packet);
      return;
    } else {
      link.tail->next = packet;
    }
    link.tail = packet;
  }
  // Starts when the wire is free, before anything queued. Nothing can overtake it, so it joins the
  // packets in flight at once. Before the time of the current event is too late: late_frames().
  void put_control(Link& link, const ControlFrame& frame, Picos now);
  // A copy of what another part has sent, which arrives at its time.
  void take_in(Link& link, const Packet& copy);

  // The first packet in flight arrives. The link's entry in the wheel is the caller's.
  static Packet* take_first(Link& link) {
    Packet* const packet = link.head;
    link.head = packet->next;
    link.head_time = link.head == nullptr ? kNever : link.head->time;
    return packet;
  }
  // All packets in flight, linked by `next`: none of them arrives.
  Packet* take_all(Link& link);

  // Departures are events of their own.
  static bool exact(const Link& link) {
    return link.egress != Link::kNoEgress &&
           (link.exact || (link.impaired & (Link::kReorders | Link::kVaries)) != 0);
  }
  void set_exact(std::span<const std::uint32_t> links, bool exact) {
    for (const std::uint32_t id : links) links_[id].exact = exact;
  }
  void wait_for_first(const Link& link) { schedule(link, link.head_time); }
  // When something happens on this link next: its first packet arrives, or with exact departures
  // one leaves.
  void reschedule(const Link& link);
  // While held, reschedule() does nothing: the caller that holds it reschedules the links
  // afterwards.
  void hold_schedule(bool held) { held_ = held; }

  Rate rate(std::uint32_t link) const { return rates_[link].rate; }
  void set_rate(Link& link, Rate rate);

  // The time of the event in progress.
  Picos now() const { return now_; }
  void set_now(Picos now) { now_ = now; }
  std::uint64_t late_frames() const { return late_frames_; }

  // Replaces the content of a link that `other` owns by that of `other`.
  void take_over(const Wire& other, std::uint32_t link);
  void gather(const Wire& other);

  void prefetch_actor(std::uint32_t link) const { wheel_.prefetch_actor(first_actor_ + link); }
  void prefetch_slot(Picos at) const { wheel_.prefetch_slot(at); }

 private:
  void schedule(const Link& link, Picos at) { wheel_.schedule(first_actor_ + link.id, at); }
  void insert(Link& link, Packet* packet);

  PacketPool& pool_;
  EventWheel& wheel_;
  std::uint32_t first_actor_;
  bool held_ = false;
  std::pmr::vector<Link> links_;
  std::vector<LinkRate> rates_;
  Picos now_{0};
  std::uint64_t late_frames_ = 0;
  PartBoundary boundary_;
};

}  // namespace paceline::fabric
