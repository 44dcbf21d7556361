#include "dataplane/transport/scheduler.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "dataplane/transport/control_plane.h"
#include "dataplane/transport/requester.h"
#include "dataplane/wire/headers.h"

namespace paceline::transport {

namespace {
// Packets built before the port is called, where the port takes more than one at a time.
constexpr std::size_t kMaxBurst = 32;
// How long a context waits when the packet pool is empty.
constexpr Picos kPoolRetry = picos_from_micros(1);
// What a queue pair may send per turn beyond a full packet: the headers of first and last packets.
constexpr std::uint32_t kQuantumExtra = wire::Reth::kBytes + wire::kImmediateBytes;
}  // namespace

// Deficit round robin counts bytes on the wire, as the context's rate and ceiling do: by payload, a
// queue pair with empty messages would never give up its turn. Over IPv4 no packet is longer than a
// quantum.
std::uint32_t Scheduler::quantum() const { return core_.facts.full_packet_bytes + kQuantumExtra; }

bool Scheduler::wake_due(const CongestionContext& context) const {
  return to_nanos(core_.now) >= context.decision.wake_at ||
         context.sent_since_event >= context.decision.wake_bytes;
}

bool Scheduler::ceiling_reached(const CongestionContext& context) const {
  const std::uint64_t ceiling = context.decision.ceiling;
  if (context.sent_total + core_.facts.full_packet_bytes <= ceiling) return false;
  const QueuePair& qp = *core_.qps[context.active_head];
  return context.sent_total + requester_->next_wire_bytes(qp) > ceiling;
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

void Scheduler::push_ready(std::uint32_t index, CongestionContext& context) {
  if (context.in_ring) return;
  context.in_ring = true;
  ClassRings& rings = rings_[context.traffic_class];
  (context.decision.urgent ? rings.urgent : rings.ready).push(index);
  ready_mask_ |= 1U << context.traffic_class;
}

std::uint32_t Scheduler::pop_ready(unsigned traffic_class) {
  ClassRings& rings = rings_[traffic_class];
  const std::uint32_t index = (rings.urgent.count != 0 ? rings.urgent : rings.ready).pop();
  if (rings.urgent.count + rings.ready.count == 0) ready_mask_ &= ~(1U << traffic_class);
  return index;
}

void Scheduler::refresh(std::uint32_t index, CongestionContext& context) {
  const ContextPlace was = context.place;
  if (context.active_head == kNoIndex) {
    context.place = ContextPlace::idle;
    set_limiter(context, cc::Limiter::application);
  } else if (context.decision.rate.bps == 0) {
    context.place = ContextPlace::blocked;
    set_limiter(context, context.decision.limiter);
  } else if (context.inflight_bytes >= context.decision.window_bytes) {
    context.place = ContextPlace::blocked;
    set_limiter(context, cc::Limiter::window);
  } else if (ceiling_reached(context)) {
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
    push_ready(index, context);
  }
  if (was == ContextPlace::paced) pacer_.cancel(index);
}

void Scheduler::deliver(std::uint32_t index, cc::Event& event) {
  CongestionContext& context = core_.contexts[index];
  constexpr std::uint32_t kAlways =
      cc::signal_bit(cc::Signal::start) | cc::signal_bit(cc::Signal::tick);
  if (((context.wants | kAlways) & cc::signal_bit(event.signal)) == 0) return;
  event.now = to_nanos(core_.now);
  event.sent_total = context.sent_total;
  // A message without payload is a packet all the same: to the algorithm it counts one byte, while
  // it is posted or waits to be sent.
  const bool work = context.active_head != kNoIndex || event.signal == cc::Signal::message;
  event.backlog_bytes = std::max<std::uint64_t>(context.backlog_bytes, work ? 1 : 0);
  event.inflight_bytes = context.inflight_bytes;
  event.sent_bytes = context.sent_since_event;
  context.sent_since_event = 0;
  const cc::Decision before = context.decision;
  control_->dispatch(index, context, event);
  apply(index, context, before, event);
}

void Scheduler::apply(std::uint32_t index, CongestionContext& context, const cc::Decision& before,
                      const cc::Event& event) {
  cc::Decision& decision = context.decision;
  assert(decision.wake_at > to_nanos(core_.now));  // an algorithm must not ask to be woken at once
  if (decision.timed && decision.wake_at != kNeverNanos) {
    timers_.schedule(index, later(to_picos(decision.wake_at), core_.now + Picos{1}));
    context.timer_set = true;
  } else if (context.timer_set) {
    timers_.cancel(index);
    context.timer_set = false;
  }
  if (decision.rate != before.rate && decision.rate.bps != 0) {
    context.next_send = context.pace_from + serialization_time(context.pace_bytes, decision.rate);
  }
  if (decision.request) {
    decision.request = false;
    control_->send_request(index, event, false);
  }
  refresh(index, context);
}

void Scheduler::activate(QueuePair& qp) {
  if (qp.active) return;
  CongestionContext& context = core_.contexts[qp.context];
  const std::uint32_t index = core_.qp_index(qp);
  qp.active = true;
  if (context.active_head == kNoIndex) {
    context.active_head = index;
    qp.next_active = qp.prev_active = index;
    qp.deficit = quantum();
    refresh(qp.context, context);
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
    context.active_head = kNoIndex;
  } else {
    core_.qps[qp.prev_active]->next_active = qp.next_active;
    core_.qps[qp.next_active]->prev_active = qp.prev_active;
    if (context.active_head == index) {
      context.active_head = qp.next_active;
      core_.qps[qp.next_active]->deficit += quantum();
    }
  }
  refresh(qp.context, context);
}

void Scheduler::rotate(CongestionContext& context) {
  context.active_head = core_.qps[context.active_head]->next_active;
  core_.qps[context.active_head]->deficit += quantum();
}

void Scheduler::run_due() {
  std::uint32_t index;
  while ((index = pacer_.pop_due(core_.now)) != pacing::PacingWheel::kNone) {
    CongestionContext& context = core_.contexts[index];
    if (wake_due(context)) {
      cc::Event event;
      event.signal = cc::Signal::tick;
      deliver(index, event);
    } else {
      refresh(index, context);
    }
  }
  while ((index = timers_.pop_due(core_.now)) != pacing::PacingWheel::kNone) {
    core_.contexts[index].timer_set = false;
    cc::Event event;
    event.signal = cc::Signal::tick;
    deliver(index, event);
  }
}

// Builds the next packet of the context and charges it. nullptr: nothing to send after all.
Packet* Scheduler::send_one(std::uint32_t index, CongestionContext& context) {
  QueuePair& qp = *core_.qps[context.active_head];
  Packet* packet = requester_->build_next(qp);
  if (packet == nullptr) {
    // Memory is not at hand, and the queue pair left the ring; or no packet is free: try again
    // soon.
    if (qp.active) {
      context.next_send = core_.now + kPoolRetry;
      refresh(index, context);
    }
    return nullptr;
  }
  const std::uint32_t bytes = packet->wire_bytes;
  context.inflight_bytes += bytes;
  context.sent_total += bytes;
  context.sent_since_event += bytes;

  // Late by more than the burst allowance: the lost time is not made up.
  Picos start = context.next_send;
  if (start < core_.now) {
    const std::uint32_t burst =
        (core_.config.pacing_burst_packets - 1) * core_.facts.full_packet_bytes;
    const Picos allowance = serialization_time(burst, context.decision.rate);
    start = later(start, core_.now - allowance);
  }
  context.pace_from = start;
  context.pace_bytes = bytes;
  context.next_send = start + serialization_time(bytes, context.decision.rate);

  if (requester_->has_work(qp)) {
    qp.deficit -= std::min(qp.deficit, bytes);
    if (qp.deficit < requester_->next_wire_bytes(qp)) rotate(context);
    refresh(index, context);
  } else {
    deactivate(qp);  // refreshes
    if (context.active_head == kNoIndex && context.backlog_bytes == 0 &&
        wants(index, cc::Signal::idle)) {
      cc::Event event;
      event.signal = cc::Signal::idle;
      deliver(index, event);
    }
  }
  return packet;
}

void Scheduler::offer(unsigned traffic_class, std::span<Packet* const> burst) {
  const std::size_t taken =
      core_.port.tx(core_.now, static_cast<std::uint8_t>(traffic_class), burst);
  for (std::size_t i = taken; i < burst.size(); ++i) {
    Packet* packet = burst[i];
    packet->next = nullptr;
    if (stalled_head_[traffic_class] == nullptr) {
      stalled_head_[traffic_class] = packet;
    } else {
      stalled_tail_[traffic_class]->next = packet;
    }
    stalled_tail_[traffic_class] = packet;
    stalled_mask_ |= 1U << traffic_class;
    ++core_.counters.tx_stalled;
  }
}

// True when nothing of the class is left over.
bool Scheduler::flush_stalled(unsigned traffic_class) {
  while (Packet* packet = stalled_head_[traffic_class]) {
    Packet* next = packet->next;
    if (core_.port.tx(core_.now, static_cast<std::uint8_t>(traffic_class), {&packet, 1}) == 0) {
      return false;
    }
    stalled_head_[traffic_class] = next;
  }
  stalled_mask_ &= ~(1U << traffic_class);
  return true;
}

void Scheduler::send() {
  std::uint32_t mask = ready_mask_ | stalled_mask_;
  const std::size_t limit = std::min<std::size_t>(core_.info.tx_burst, kMaxBurst);
  while (mask != 0) {
    const auto traffic_class = static_cast<unsigned>(std::bit_width(mask)) - 1;
    const std::uint32_t bit = 1U << traffic_class;
    if (core_.port.tx_ready_at(static_cast<std::uint8_t>(traffic_class)) > core_.now ||
        ((stalled_mask_ & bit) != 0 && !flush_stalled(traffic_class))) {
      mask &= ~bit;
      continue;
    }
    std::array<Packet*, kMaxBurst> burst;
    std::size_t count = 0;
    while (count < limit && (ready_mask_ & bit) != 0) {
      const std::uint32_t index = pop_ready(traffic_class);
      CongestionContext& context = core_.contexts[index];
      context.in_ring = false;
      if (context.place != ContextPlace::ready) continue;  // a stale entry
      if (wake_due(context)) {
        cc::Event event;
        event.signal = cc::Signal::tick;
        deliver(index, event);  // puts it back where it belongs
        continue;
      }
      Packet* packet = send_one(index, context);
      if (packet != nullptr) burst[count++] = packet;
    }
    if (count == 0) {
      mask &= ~bit;
      continue;
    }
    offer(traffic_class, {burst.data(), count});
    if (((ready_mask_ | stalled_mask_) & bit) == 0) mask &= ~bit;
  }
}

void Scheduler::discard() {
  for (Packet*& head : stalled_head_) {
    while (Packet* packet = head) {
      head = packet->next;
      core_.pool.free(packet);
    }
  }
}

Picos Scheduler::next_deadline() const {
  Picos next = earlier(pacer_.next_deadline(), timers_.next_deadline());
  std::uint32_t mask = ready_mask_ | stalled_mask_;
  while (mask != 0) {
    const auto traffic_class = static_cast<unsigned>(std::bit_width(mask)) - 1;
    mask &= ~(1U << traffic_class);
    // What the port refused although ready is tried again a little later.
    const Picos ready = core_.port.tx_ready_at(static_cast<std::uint8_t>(traffic_class));
    next = earlier(next, later(ready, core_.now + Picos{1}));
  }
  return next;
}

std::uint32_t Scheduler::create_context(std::uint8_t profile, std::uint8_t traffic_class,
                                        std::uint32_t peer, std::uint8_t arm,
                                        const cc::Handover* handover) {
  std::uint32_t index;
  if (core_.free_contexts.empty()) {
    index = core_.contexts.add();
    const std::uint32_t reserve = roomy(core_.contexts.size());
    pacer_.reserve(reserve);
    timers_.reserve(reserve);
    for (ClassRings& rings : rings_) {
      rings.urgent.grow(reserve);
      rings.ready.grow(reserve);
    }
  } else {
    index = core_.free_contexts.back();
    core_.free_contexts.pop_back();
  }
  CongestionContext& context = core_.contexts[index];
  const bool in_ring = context.in_ring;  // a stale ring entry may still name the slot
  context = CongestionContext{};
  context.in_ring = in_ring;
  context.in_use = true;
  context.profile = profile;
  context.traffic_class = traffic_class;
  context.peer = peer;
  context.arm = arm;
  context.limiter_since = core_.now;
  context.next_send = core_.now;
  context.pace_from = core_.now;
  control_->start_algorithm(index, context, handover);
  return index;
}

void Scheduler::destroy_context(std::uint32_t index) {
  CongestionContext& context = core_.contexts[index];
  pacer_.cancel(index);
  timers_.cancel(index);
  context.timer_set = false;
  settle_limiter(context);
  for (std::size_t i = 0; i < context.limiter_picos.size(); ++i) {
    core_.retired_limiter_picos[i] += context.limiter_picos[i];
  }
  context.place = ContextPlace::idle;
  context.in_use = false;
  core_.free_contexts.push_back(index);
}

}  // namespace paceline::transport
