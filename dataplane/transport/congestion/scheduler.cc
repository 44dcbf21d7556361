#include "dataplane/transport/congestion/scheduler.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "dataplane/transport/ends/requester.h"
#include "dataplane/transport/message/packet_class.h"
#include "dataplane/transport/read/read_responder.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline::transport {

namespace {
// Bytes per turn beyond a full packet: the headers of first and last packets.
constexpr std::uint32_t kQuantumExtra = wire::Reth::kBytes + wire::kImmediateBytes;

// Deficit round robin counts bytes on the wire, as the context's rate and ceiling do. If it counted
// payload, a queue pair with empty messages would never give up its turn. Over IPv4 no packet is
// longer than a quantum.
std::uint32_t quantum(const EngineCore& core) {
  return core.facts.full_packet_bytes + kQuantumExtra;
}

std::uint32_t next_wire_bytes(const EngineCore& core, const QueuePair& qp) {
  return response_is_next(core, qp) ? ReadResponder::next_wire_bytes(core, qp)
                                    : Requester::next_wire_bytes(core, qp);
}

bool ceiling_reached(const EngineCore& core, const CongestionContext& context) {
  const std::uint64_t ceiling = context.decision.ceiling;
  if (context.sent_total + core.facts.full_packet_bytes <= ceiling) return false;
  const QueuePair& qp = *core.qps[context.active_head];
  return context.sent_total + next_wire_bytes(core, qp) > ceiling;
}

// How long the context is quiet after a packet. READ responses, UC and UD are not acknowledged, so
// a window cannot count them. If there is a window, they go out at a window per unloaded round
// trip, when that is slower than the rate.
Picos spacing(const EngineCore& core, const CongestionContext& context, std::uint32_t bytes,
              bool acknowledged) {
  const Picos at_rate = serialization_time(bytes, context.decision.rate);
  const std::uint64_t window = context.decision.window_bytes;
  if (acknowledged || window == cc::kUnlimited) return at_rate;
  const std::int64_t round_trip = std::int64_t{core.config.base_rtt_ns} * 1000;
  const auto at_window = static_cast<std::int64_t>(bytes * static_cast<std::uint64_t>(round_trip) /
                                                   std::max<std::uint64_t>(window, 1));
  return later(at_rate, Picos{at_window});
}

// A window counts what is acknowledged, and holds back nothing else. Otherwise READ responses would
// wait for acknowledgements that their receiver gives only behind its own responses, which wait in
// the same way. Makes a queue pair with responses the next one.
bool response_first(const EngineCore& core, CongestionContext& context) {
  if (!context.answers) return false;
  std::uint32_t index = context.active_head;
  do {
    const QueuePair& qp = *core.qps[index];
    if (qp.response_ready) {
      context.active_head = index;
      return true;
    }
    index = qp.next_active;
  } while (index != context.active_head);
  return false;
}

void rotate(const EngineCore& core, CongestionContext& context) {
  context.active_head = core.qps[context.active_head]->next_active;
  core.qps[context.active_head]->deficit += quantum(core);
}

// The one of the two that has sent less is next. A side that had nothing to send gains no claim
// from that.
void share_turns(const EngineCore& core, QueuePair& qp, std::uint32_t bytes, bool response) {
  if (!qp.response_ready || !Requester::has_work(qp, core.now)) {
    qp.lane_balance = 0;
  } else {
    qp.lane_balance +=
        response ? -static_cast<std::int32_t>(bytes) : static_cast<std::int32_t>(bytes);
  }
}

}  // namespace

bool response_is_next(const EngineCore& core, const QueuePair& qp) {
  return qp.response_ready && (qp.lane_balance >= 0 || !Requester::has_work(qp, core.now));
}

bool Scheduler::wake_due(const CongestionContext& context) const {
  return to_nanos(core_.now) >= context.decision.wake_at ||
         context.sent_since_event >= context.decision.wake_bytes;
}

void Scheduler::reserve(std::uint32_t contexts) {
  pacer_.reserve(contexts);
  timers_.reserve(contexts);
  for (ClassRings& rings : rings_) {
    rings.urgent.grow(contexts);
    rings.ready.grow(contexts);
  }
}

void Scheduler::remove(std::uint32_t index) {
  CongestionContext& context = core_.contexts[index];
  pacer_.cancel(index);
  timers_.cancel(index);
  context.timer_set = false;
  settle_limiter(context);
  context.place = ContextPlace::idle;
}

bool Scheduler::has_work(const QueuePair& qp) const {
  return qp.response_ready || Requester::has_work(qp, core_.now);
}

void Scheduler::settle_limiter(CongestionContext& context) const {
  context.limiter_picos[static_cast<unsigned>(context.limiter)] +=
      (core_.now - context.limiter_since).count;
  context.limiter_since = core_.now;
}

void Scheduler::ReadyRing::grow(std::uint32_t entries) {
  if (size >= entries) return;
  auto larger = std::make_unique<std::uint32_t[]>(entries);
  for (std::uint32_t i = 0; i + 1 < count; ++i) larger[i] = slots[(head + i) % size];
  slots = std::move(larger);
  size = entries;
  head = 0;
}

void Scheduler::push_ready(std::uint32_t index, CongestionContext& context, unsigned ring) {
  const std::uint32_t bit = 1U << ring;
  if ((context.in_rings & bit) != 0) return;
  context.in_rings = static_cast<std::uint8_t>(context.in_rings | bit);
  ClassRings& rings = rings_[ring];
  (context.decision.urgent ? rings.urgent : rings.ready).push(index);
  ready_mask_ |= bit;
}

// The traffic class of the packet whose turn it is, where classes change from packet to packet
// (cc::Decision::classed). READ responses keep their own: no acknowledgement says that they have
// arrived.
std::uint8_t Scheduler::class_of_next(const CongestionContext& context) const {
  const QueuePair& qp = *core_.qps[context.active_head];
  if (qp.unreliable || response_is_next(core_, qp)) return context.traffic_class;
  return PacketClass::of_next(core_, qp, context);
}

// Puts the context into the ring of its own class. Out of line: seldom needed, and push_ready stays
// small.
[[gnu::cold, gnu::noinline]] void Scheduler::take_own_turn(std::uint32_t index,
                                                           CongestionContext& context) {
  push_ready(index, context, context.traffic_class);
}

// Classes order packets in the network. Here contexts take turns, whatever their packets' classes:
// receivers are independent, and a long message that is the shortest one at its receiver would
// delay all traffic of this host to others. A class that the port does not take now waits in its
// own ring and delays no other class.
bool Scheduler::parked(std::uint32_t index, CongestionContext& context, unsigned ring) {
  const unsigned next = class_of_next(context);
  const bool taken =
      core_.port.tx_ready_at(static_cast<std::uint8_t>(next)) <= core_.now && backlog_.empty(next);
  if (next == ring || taken) return false;
  push_ready(index, context, next);
  return true;
}

std::uint32_t Scheduler::pop_ready(unsigned traffic_class) {
  ClassRings& rings = rings_[traffic_class];
  const std::uint32_t index = (rings.urgent.count != 0 ? rings.urgent : rings.ready).pop();
  if (rings.urgent.count + rings.ready.count == 0) ready_mask_ &= ~(1U << traffic_class);
  return index;
}

void Scheduler::note_response(const QueuePair& qp) {
  CongestionContext& context = core_.contexts[qp.context];
  context.answers = true;
  if (context.place == ContextPlace::blocked) {
    place(qp.context, context);
  } else if (context.place == ContextPlace::ready && context.decision.classed != 0) {
    // It may wait for a class in which responses do not go.
    take_own_turn(qp.context, context);
  }
}

void Scheduler::place(std::uint32_t index, CongestionContext& context) {
  const ContextPlace was = context.place;
  if (context.active_head == kNoIndex) {
    context.place = ContextPlace::idle;
    set_limiter(context, cc::Limiter::application);
  } else if (context.decision.rate.bps == 0) {
    context.place = ContextPlace::blocked;
    set_limiter(context, context.decision.limiter);
  } else if (window_full(context) && !response_first(core_, context)) {
    context.place = ContextPlace::blocked;
    set_limiter(context, cc::Limiter::window);
  } else if (ceiling_reached(core_, context)) {
    context.place = ContextPlace::blocked;
    set_limiter(context, cc::Limiter::credit);
  } else if (context.next_send > core_.now) {
    context.place = ContextPlace::paced;
    set_limiter(context, context.decision.rate >= core_.info.link_rate ? cc::Limiter::port
                                                                       : context.decision.limiter);
    // A rate that will rise before the packet is due may make it due sooner.
    const Picos wake = to_picos(context.decision.wake_at);
    pacer_.schedule(
        index, wake < context.next_send ? later(wake, core_.now + Picos{1}) : context.next_send);
    return;
  } else {
    context.place = ContextPlace::ready;
    set_limiter(context, cc::Limiter::port);
    push_ready(index, context, context.traffic_class);
  }
  if (was == ContextPlace::paced) pacer_.cancel(index);
}

void Scheduler::take_decision(std::uint32_t index, CongestionContext& context, Rate rate_before) {
  cc::Decision& decision = context.decision;
  assert(decision.wake_at > to_nanos(core_.now));  // an algorithm must not ask to be woken at once
  if (decision.timed && decision.wake_at != kNeverNanos) {
    timers_.schedule(index, later(to_picos(decision.wake_at), core_.now + Picos{1}));
    context.timer_set = true;
  } else if (context.timer_set) {
    timers_.cancel(index);
    context.timer_set = false;
  }
  if (decision.rate != rate_before && decision.rate.bps != 0) {
    context.next_send = context.pace_from + serialization_time(context.pace_bytes, decision.rate);
    // A context that leaves rate 0 has no burst credit. Otherwise every newly granted sender would
    // open with two packets, and senders that begin in turn at one receiver would take twice their
    // turns. If several contexts of this host have work, the uplink spaces their first packets.
    if (rate_before.bps == 0 && working_ <= 1) {
      context.next_send = later(context.next_send, core_.now);
    }
  }
}

void Scheduler::activate(QueuePair& qp) {
  if (qp.active) return;
  CongestionContext& context = core_.contexts[qp.context];
  const std::uint32_t index = core_.qp_index(qp);
  qp.active = true;
  if (context.active_head == kNoIndex) {
    ++working_;
    context.active_head = index;
    qp.next_active = qp.prev_active = index;
    qp.deficit = quantum(core_);
    place(qp.context, context);
    return;
  }
  QueuePair& head = *core_.qps[context.active_head];
  qp.deficit = 0;
  qp.next_active = context.active_head;
  qp.prev_active = head.prev_active;
  core_.qps[head.prev_active]->next_active = index;
  head.prev_active = index;
}

void Scheduler::deactivate(QueuePair& qp) {
  if (!qp.active) return;
  CongestionContext& context = core_.contexts[qp.context];
  const std::uint32_t index = core_.qp_index(qp);
  qp.active = false;
  if (qp.next_active == index) {
    --working_;
    context.active_head = kNoIndex;
  } else {
    core_.qps[qp.prev_active]->next_active = qp.next_active;
    core_.qps[qp.next_active]->prev_active = qp.prev_active;
    if (context.active_head == index) {
      context.active_head = qp.next_active;
      core_.qps[qp.next_active]->deficit += quantum(core_);
    }
  }
  place(qp.context, context);
}

// After the packet that the context sends now.
void Scheduler::pace(CongestionContext& context, const Sent& sent) const {
  // A delay beyond the burst allowance is not made up.
  Picos start = context.next_send;
  if (start < core_.now) {
    const std::uint32_t burst =
        (core_.config.pacing_burst_packets - 1) * core_.facts.full_packet_bytes;
    const Picos allowance =
        later(serialization_time(burst, context.decision.rate), core_.config.pacing_catch_up);
    start = later(start, core_.now - allowance);
  }
  context.pace_from = start;
  context.pace_bytes = sent.wire_bytes;
  context.next_send = start + spacing(core_, context, sent.wire_bytes, sent.acknowledged);
}

// The queue pair has more to send. Its turn continues as long as its deficit lasts.
void Scheduler::end_turn(QueuePair& qp, CongestionContext& context, const Sent& sent) {
  if (sent.response || qp.response_ready) share_turns(core_, qp, sent.wire_bytes, sent.response);
  qp.deficit -= std::min(qp.deficit, sent.wire_bytes);
  if (qp.deficit < next_wire_bytes(core_, qp)) rotate(core_, context);
  place(qp.context, context);
}

}  // namespace paceline::transport
