#include "dataplane/fabric/sweep/fabric_ahead.h"

#include <algorithm>
#include <bit>

#include "dataplane/base/prefetch.h"
#include "dataplane/fabric/forwarding/fabric_state.h"
#include "dataplane/fabric/forwarding/host_port.h"

namespace paceline::fabric {

void FabricAhead::prefetch_actor(std::uint32_t actor) const {
  prefetch_line(&state_.wire[std::min(actor, state_.wire.size() - 1)]);
}

namespace {
// Placeholders for missing objects: fetching them does no harm, and checking first would cost more.
const Packet kNoPacket{};
const Egress kNoQueue{};
}  // namespace

const Egress& FabricAhead::egress_of(const Link& link) const {
  return link.egress == Link::kNoEgress ? kNoQueue : state_.queues[link.egress];
}

bool FabricAhead::ends_at_a_switch(std::uint32_t actor) const {
  return actor < state_.wire.size() && (state_.wire[actor].to & Link::kToSwitch) != 0;
}
bool FabricAhead::ends_at_a_host(std::uint32_t actor) const {
  return actor < state_.wire.size() && (state_.wire[actor].to & Link::kToSwitch) == 0;
}
std::uint32_t FabricAhead::host_at(std::uint32_t id) const { return state_.wire[id].to; }
const Packet* FabricAhead::first_on(std::uint32_t id) const { return state_.wire[id].head; }

// Its first packet; the queue that feeds the link; the switch at its end.
void FabricAhead::prefetch_packet(std::uint32_t id) const {
  const Link& link = state_.wire[id];
  prefetch_line(link.head);
  const Egress& egress = egress_of(link);
  const unsigned traffic_class = std::bit_width(link.backlog | 1U) - 1U;
  prefetch_line(&egress);
  prefetch_line(&egress.queues[traffic_class]);
  if ((link.to & Link::kToSwitch) != 0) state_.switches[link.to & ~Link::kToSwitch].prefetch();
}

// The packet behind the first, for its time; the destination of the first; and the packets that
// wait for the link, if it is to send then.
void FabricAhead::prefetch_next(std::uint32_t id, Found& found) const {
  const Link& link = state_.wire[id];
  prefetch_behind(link, found);
  found.out = kNowhere;
  if (link.head == nullptr || link.head->route >= state_.spec.hosts) [[unlikely]]
    return;
  const std::uint32_t out =
      state_.topology.next_link(link.to & ~Link::kToSwitch, link.head->route, link.head->entropy);
  if (out == Topology::kNoLink) [[unlikely]]
    return;
  found.out = out;
  prefetch_line(&state_.wire[out]);
  state_.wire.prefetch_actor(out);
}

void FabricAhead::prefetch_arrival(std::uint32_t id, Found& found) const {
  const Link& link = state_.wire[id];
  prefetch_behind(link, found);
  prefetch_line(link.head != nullptr ? link.head->header.data() : kNoPacket.header.data());
}

// Departures wait for the last packet in flight.
void FabricAhead::prefetch_behind(const Link& link, Found& found) const {
  const Packet* const head = link.head != nullptr ? link.head : &kNoPacket;
  const unsigned traffic_class = std::bit_width(link.backlog | 1U) - 1U;
  const Egress& egress = egress_of(link);
  const Packet* const waiting = egress.queues[traffic_class].head;
  prefetch_line(head->next != nullptr ? head->next : waiting);
  const bool leaves = link.backlog != 0 && head->next == nullptr && waiting != nullptr;
  found.leaving = leaves ? waiting : &kNoPacket;
  state_.switches[egress.switch_index].prefetch();
}

// Prefetches what the release of a packet reads, and the packet behind it. A packet that was freed
// meanwhile still belongs to the pool: the prefetch is useless, but harmless.
void FabricAhead::prefetch_departure(std::uint32_t id, Found& found) const {
  const Link& link = state_.wire[id];
  const Egress& egress = egress_of(link);
  const Packet* const leaving = found.leaving;
  state_.switches[egress.switch_index].buffer.prefetch_counters(leaving->ingress);
  found.leaving = leaving->next != nullptr ? leaving->next : &kNoPacket;
  prefetch_line(found.leaving);
}

// Prefetches the counters of enqueueing the first packet on `out`.
void FabricAhead::prefetch_egress(std::uint32_t id, const Found& found) const {
  const Link& link = state_.wire[id];
  if (found.out == kNowhere || link.head == nullptr) [[unlikely]]
    return;
  const Egress& egress = state_.queues[state_.wire[found.out].egress];
  prefetch_line(&egress);
  prefetch_line(&egress.queues[link.head->traffic_class]);
  state_.switches[link.to & ~Link::kToSwitch].buffer.prefetch(link.to_port);
}

// The packets that it joins there; or, on a free link, when it will arrive.
void FabricAhead::prefetch_joined(std::uint32_t id, const Found& found) const {
  const Packet* const head = state_.wire[id].head;
  if (found.out == kNowhere || head == nullptr) [[unlikely]]
    return;
  const Link& out = state_.wire[found.out];
  const ClassQueue& queue = state_.queues[out.egress].queues[head->traffic_class];
  prefetch_line(queue.head);
  prefetch_line(queue.tail);
  state_.wire.prefetch_slot(
      head->time + out.delay +
      Picos{static_cast<std::int64_t>(std::uint64_t{head->wire_bytes} * out.ps_per_byte)});
}

void FabricAhead::prefetch_before(std::uint32_t id, const Found& found) const {
  const Link& link = state_.wire[id];
  if (found.out == kNowhere || link.head == nullptr) [[unlikely]]
    return;
  const Egress& egress = state_.queues[state_.wire[found.out].egress];
  const ClassQueue& queue = egress.queues[link.head->traffic_class];
  const Packet* const first = queue.head != nullptr ? queue.head : &kNoPacket;
  state_.switches[egress.switch_index].buffer.prefetch_counters(first->ingress);
  prefetch_line(first->next);
}

void FabricAhead::prefetch_port(std::uint32_t host) const { prefetch_line(&ports_[host]); }

void FabricAhead::prefetch_uplink(std::uint32_t host) const {
  const Link& link = ports_[host].uplink();
  prefetch_line(&link);
  prefetch_line(&state_.hosts[host]);
  // Computes its number without reading it: the link is not in the cache yet.
  const auto id = static_cast<std::uint32_t>(&link - &state_.wire[0]);
  state_.wire.prefetch_actor(id);
}

}  // namespace paceline::fabric
