// Links that lose, damage, double and delay packets, end in another part of the fabric, or record
// what they carry. All draws of a link come from its own generator, in the order of departure.
#include <algorithm>

#include "dataplane/fabric/forwarding/forwarding.h"
#include "dataplane/wire/int_record.h"

namespace paceline::fabric {

// A link that has reordered stays one that may: late packets can be in flight.
void Forwarding::refresh_impairments(Link& link) {
  const LinkDetail& detail = details_[link.id];
  const bool draws = detail.loss > 0 || detail.error_rate > 0 || detail.duplicate > 0;
  link.impaired = static_cast<std::uint8_t>(
      (link.impaired & (Link::kVaries | Link::kReorders | Link::kHarmless)) |
      (draws ? Link::kDraws : 0) | (detail.reorder > 0 ? Link::kReorders : 0));
}

void Forwarding::transmit_impaired(Link& link, Packet* packet, Picos start) {
  const std::uint16_t ingress = packet->ingress;  // a lost packet forgets it
  if ((packet->flags & packet_flag::telemetry) != 0) record(link, *packet, start);
  bool duplicate = false;
  const Picos late = impair(link, packet, duplicate);
  put_on_wire(link, packet, start, late);
  if (link.leaves()) send_away(link, *packet);
  if ((link.impaired & Link::kCredits) != 0) {
    pass_credits(link, packet->traffic_class, packet->wire_bytes, ingress, start);
  }
  if (!duplicate) return;
  Packet* copy = pool_.copy_of(*packet);
  copy->flags |= packet_flag::duplicate;
  ++stats_.hops;
  stats_.hop_bytes += copy->wire_bytes;
  ++stats_.duplicated_packets;
  stats_.duplicated_bytes += copy->wire_bytes;
  put_on_wire(link, copy, link.busy);
  if (link.leaves()) send_away(link, *copy);
}

// The packet leaves by this link at `start`, and is counted already. Like marks, this goes by the
// queue as it stood at that time, however late the departure was decided.
void Forwarding::record(const Link& link, Packet& packet, Picos start) {
  if (link.egress == Link::kNoEgress || packet.records == kIntHops) return;
  const Egress& egress = egresses_[link.egress];
  IntHop hop;
  hop.rate_mbps = static_cast<std::uint32_t>(details_[link.id].rate.bps / 1'000'000);
  hop.queue_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(egress.queued_bytes, ~0U));
  hop.sent_bytes = static_cast<std::uint32_t>(egress.bytes - packet.wire_bytes);
  hop.time_ns = static_cast<std::uint32_t>(to_nanos(start).count);
  wire::store_int_record(tail_of(packet) + packet.records * wire::kIntRecordBytes, hop);
  packet.records = (packet.records + 1U) & 7U;
  packet.path = (packet.path * 5U + (link.id * 0x9E37'79B1U >> 19)) & 0x1FFFU;
}

// A lost packet still takes its time on the wire; it is dropped where it would have arrived.
// Returns by how much the packet is late.
Picos Forwarding::impair(Link& link, Packet* packet, bool& duplicate) {
  LinkDetail& detail = details_[link.id];
  if (detail.loss > 0 && detail.impairment.uniform() < detail.loss && packet->route != kRouteLost) {
    packet->route = kRouteLost;
    packet->ingress = static_cast<std::uint16_t>(DropReason::link_loss);
  }
  if (detail.error_rate > 0 && detail.impairment.uniform() < detail.error_rate) {
    if ((packet->flags & packet_flag::corrupt) == 0) ++stats_.corrupted_packets;
    packet->flags |= packet_flag::corrupt;
  }
  if (detail.duplicate > 0) duplicate = detail.impairment.uniform() < detail.duplicate;
  if (detail.reorder > 0 && detail.impairment.uniform() < detail.reorder) {
    ++stats_.reordered_packets;
    return Picos{1 + static_cast<std::int64_t>(detail.impairment.below(
                         static_cast<std::uint64_t>(spec_.reorder_delay.count)))};
  }
  return Picos{0};
}

// Something is in flight. By arrival, a picosecond apart at least; what is not late on purpose
// keeps its order on a link that does not reorder.
void Forwarding::insert_in_flight(Link& link, Packet* packet) {
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

}  // namespace paceline::fabric
