#include "dataplane/transport/scheduler.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "dataplane/transport/control_plane.h"
#include "dataplane/transport/requester.h"
#include "dataplane/transport/responder.h"
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
  return context.sent_total + next_wire_bytes(qp) > ceiling;
}

bool Scheduler::has_work(const QueuePair& qp) const {
  return qp.response_ready || RequesterPart::has_work(qp, core_.now);
}

bool Scheduler::picks_response(const QueuePair& qp) const {
  return qp.response_ready && (qp.lane_balance >= 0 || !RequesterPart::has_work(qp, core_.now));
}

std::uint32_t Scheduler::next_wire_bytes(const QueuePair& qp) const {
  return picks_response(qp) ? responder_->next_wire_bytes(qp) : requester_->next_wire_bytes(qp);
}

// How long the context is quiet after a packet. Nothing acknowledges READ responses, UC and UD, so
// a window cannot count them: where there is a window, they go out at a window per unloaded round
// trip, if that is slower than the rate.
Picos Scheduler::spacing(const CongestionContext& context, std::uint32_t bytes,
                         bool acknowledged) const {
  const Picos at_rate = serialization_time(bytes, context.decision.rate);
  const std::uint64_t window = context.decision.window_bytes;
  if (acknowledged || window == cc::kUnlimited) return at_rate;
  const std::int64_t round_trip = std::int64_t{core_.config.base_rtt_ns} * 1000;
  const auto at_window = static_cast<std::int64_t>(bytes * static_cast<std::uint64_t>(round_trip) /
                                                   std::max<std::uint64_t>(window, 1));
  return later(at_rate, Picos{at_window});
}

void Scheduler::retarget(QueuePair& qp) { requester_->retarget(qp); }

void Scheduler::report_idle(std::uint32_t index) {
  const CongestionContext& context = core_.contexts[index];
  if (context.active_head != kNoIndex || context.backlog_bytes != 0) return;
  if (!wants(index, cc::Signal::idle)) return;
  cc::Event event;
  event.signal = cc::Signal::idle;
  deliver(index, event);
}

void Scheduler::send_in_line(Packet* packet) {
  in_line_[packet->traffic_class].push(packet);
  stalled_mask_ |= 1U << packet->traffic_class;
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

// A window counts what is acknowledged, and holds back nothing else: READ responses would wait for
// acknowledgements that their receiver gives only behind responses of its own, which wait likewise.
// Makes a queue pair the next that has any.
bool Scheduler::response_first(CongestionContext& context) {
  if (!context.answers) return false;
  std::uint32_t index = context.active_head;
  do {
    const QueuePair& qp = *core_.qps[index];
    if (qp.response_ready) {
      context.active_head = index;
      return true;
    }
    index = qp.next_active;
  } while (index != context.active_head);
  return false;
}

void Scheduler::note_response(const QueuePair& qp) {
  CongestionContext& context = core_.contexts[qp.context];
  context.answers = true;
  if (context.place == ContextPlace::blocked) refresh(qp.context, context);
}

void Scheduler::refresh(std::uint32_t index, CongestionContext& context) {
  const ContextPlace was = context.place;
  if (context.active_head == kNoIndex) {
    context.place = ContextPlace::idle;
    set_limiter(context, cc::Limiter::application);
  } else if (context.decision.rate.bps == 0) {
    context.place = ContextPlace::blocked;
    set_limiter(context, context.decision.limiter);
  } else if (window_full(context) && !response_first(context)) {
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

// What an algorithm must reckon with for READs and atomics that wait to be asked for: they carry no
// payload but are longer than an empty message, and who grants bytes has to cover each.
std::uint64_t Scheduler::bare_backlog(const QueuePair& qp) {
  constexpr std::uint64_t kRequestBytes = 112;  // an atomic over IPv4 on the wire
  const RequesterState& r = qp.requester;
  const std::uint32_t waiting = r.queue.tail() - r.cursor;
  return waiting != 0 && r.queue.at(r.cursor).answered ? waiting * kRequestBytes : 0;
}

// READs and atomics waited for others to be answered. With nothing else to send the algorithm has
// been told that all is quiet, and would grant nothing for them.
void Scheduler::announce_bare(const QueuePair& qp) {
  cc::Event event;
  event.signal = cc::Signal::message;
  event.message_bytes = bare_backlog(qp);
  if (event.message_bytes != 0) deliver(qp.context, event);
}

void Scheduler::deliver(std::uint32_t index, cc::Event& event) {
  CongestionContext& context = core_.contexts[index];
  constexpr std::uint32_t kAlways =
      cc::signal_bit(cc::Signal::start) | cc::signal_bit(cc::Signal::tick);
  const bool sample = event.rtt_ns != 0 && (context.wants & cc::kWantsRoundTrips) != 0;
  if (((context.wants | kAlways) & cc::signal_bit(event.signal)) == 0 && !sample) return;
  event.now = to_nanos(core_.now);
  event.sent_total = context.sent_total;
  // A message without payload is a packet all the same: to the algorithm it counts one byte, while
  // it is posted or waits to be sent.
  const bool work = context.active_head != kNoIndex || event.signal == cc::Signal::message;
  event.backlog_bytes = std::max<std::uint64_t>(context.backlog_bytes, work ? 1 : 0);
  if (context.backlog_bytes == 0 && context.active_head != kNoIndex) {
    event.backlog_bytes =
        std::max(event.backlog_bytes, bare_backlog(*core_.qps[context.active_head]));
  }
  event.inflight_bytes = context.inflight_bytes;
  event.sent_bytes = context.sent_since_event;
  context.sent_since_event = 0;
  const Rate rate_before = context.decision.rate;
  control_->dispatch(index, context, event);
  apply(index, context, rate_before, event);
}

void Scheduler::apply(std::uint32_t index, CongestionContext& context, Rate rate_before,
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
  if (decision.rate != rate_before && decision.rate.bps != 0) {
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
  Packet* packet = core_.pool.alloc();
  if (packet == nullptr) {
    ++core_.counters.no_packet;
    context.next_send = core_.now + kPoolRetry;
    refresh(index, context);
    return nullptr;
  }
  const bool response = picks_response(qp) || (qp.response_ready && window_full(context));
  if (!(response ? responder_->build_response(qp, *packet) : requester_->build_next(qp, *packet))) {
    // Memory is not at hand; or the queue pair has failed, and left the ring.
    core_.pool.free(packet);
    if (qp.active) {
      settle(qp);
      refresh(index, context);
    }
    return nullptr;
  }
  const std::uint32_t bytes = packet->wire_bytes;
  const bool acknowledged = !response && !qp.unreliable;
  if (acknowledged) context.inflight_bytes += bytes;
  context.sent_total += bytes;
  context.sent_since_event += bytes;
  if (qp.requester.rate_limited && !response) [[unlikely]]
    requester_->charge_limit(qp, bytes);

  // Late by more than the burst allowance: the lost time is not made up.
  Picos start = context.next_send;
  if (start < core_.now) {
    const std::uint32_t burst =
        (core_.config.pacing_burst_packets - 1) * core_.facts.full_packet_bytes;
    const Picos allowance =
        later(serialization_time(burst, context.decision.rate), core_.config.pacing_catch_up);
    start = later(start, core_.now - allowance);
  }
  context.pace_from = start;
  context.pace_bytes = bytes;
  context.next_send = start + spacing(context, bytes, acknowledged);

  if (has_work(qp)) {
    if (response || qp.response_ready) share_turns(qp, bytes, response);
    qp.deficit -= std::min(qp.deficit, bytes);
    if (qp.deficit < next_wire_bytes(qp)) rotate(context);
    refresh(index, context);
  } else {
    qp.lane_balance = 0;
    deactivate(qp);  // refreshes
    report_idle(index);
    if (qp.config.type == QpType::ud) requester_->retarget(qp);
  }
  return packet;
}

// Which of the two has sent less is next; who had nothing to send has no claim from that.
void Scheduler::share_turns(QueuePair& qp, std::uint32_t bytes, bool response) {
  if (!qp.response_ready || !RequesterPart::has_work(qp, core_.now)) {
    qp.lane_balance = 0;
  } else {
    qp.lane_balance +=
        response ? -static_cast<std::int32_t>(bytes) : static_cast<std::int32_t>(bytes);
  }
}

void Scheduler::offer(unsigned traffic_class, std::span<Packet* const> burst) {
  const std::size_t taken =
      core_.port.tx(core_.now, static_cast<std::uint8_t>(traffic_class), burst);
  for (std::size_t i = taken; i < burst.size(); ++i) {
    stalled_[traffic_class].push(burst[i]);
    stalled_mask_ |= 1U << traffic_class;
    ++core_.counters.tx_stalled;
  }
}

// True when nothing of the class is left over.
bool Scheduler::flush_stalled(unsigned traffic_class) {
  for (PacketFifo* fifo : {&stalled_[traffic_class], &in_line_[traffic_class]}) {
    while (!fifo->empty()) {
      Packet* packet = fifo->head;
      Packet* const next = packet->next;
      if (core_.port.tx(core_.now, static_cast<std::uint8_t>(traffic_class), {&packet, 1}) == 0) {
        return false;
      }
      fifo->head = next;
      if (next == nullptr) fifo->tail = nullptr;
    }
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
    // What is to go in line waits behind what is built so far: the burst ends there.
    while (count < limit && (ready_mask_ & bit) != 0 && !waits_in_line(traffic_class)) {
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
    if (count == 0 && !waits_in_line(traffic_class)) {
      mask &= ~bit;
      continue;
    }
    if (count != 0) offer(traffic_class, {burst.data(), count});
    if (((ready_mask_ | stalled_mask_) & bit) == 0) mask &= ~bit;
  }
}

void Scheduler::discard() {
  for (unsigned c = 0; c < kTrafficClasses; ++c) {
    for (PacketFifo* fifo : {&stalled_[c], &in_line_[c]}) {
      while (!fifo->empty()) core_.pool.free(fifo->pop());
    }
  }
}

// Something is ready: when its port is.
Picos Scheduler::next_send() const {
  Picos next = kNever;
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

std::uint32_t Scheduler::create_context(cc::AlgorithmId algorithm, std::uint8_t traffic_class,
                                        std::uint32_t peer, const cc::Handover* handover) {
  std::uint32_t index;
  if (core_.free_contexts.empty()) {
    index = core_.contexts.add(core_.context_storage.emplace_back());
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
  context.traffic_class = traffic_class;
  context.peer = peer;
  context.limiter_since = core_.now;
  context.next_send = core_.now;
  context.pace_from = core_.now;
  control_->start_algorithm(index, context, algorithm, handover);
  return index;
}

void Scheduler::replace_algorithm(std::uint32_t index, cc::AlgorithmId algorithm,
                                  const cc::Handover& handover) {
  CongestionContext& context = core_.contexts[index];
  const Rate rate_before = context.decision.rate;
  context.sent_since_event = 0;
  control_->start_algorithm(index, context, algorithm, &handover);
  apply(index, context, rate_before, cc::Event{});
  if (context.active_head != kNoIndex || context.backlog_bytes != 0) announce_backlog(index);
}

void Scheduler::announce_backlog(std::uint32_t index) {
  cc::Event event;
  event.signal = cc::Signal::message;
  event.message_bytes = std::max<std::uint64_t>(core_.contexts[index].backlog_bytes, 1);
  deliver(index, event);
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
