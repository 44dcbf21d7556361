// The sending half of the scheduler: who is ready builds packets, as long as the port takes them.
#include <algorithm>
#include <array>
#include <bit>

#include "dataplane/transport/control_plane.h"
#include "dataplane/transport/requester.h"
#include "dataplane/transport/responder.h"
#include "dataplane/transport/scheduler.h"

namespace paceline::transport {

namespace {
// Packets built before the port is called, where the port takes more than one at a time.
constexpr std::size_t kMaxBurst = 32;
// How long a context waits when the packet pool is empty.
constexpr Picos kPoolRetry = picos_from_micros(1);
}  // namespace

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
  const std::uint8_t in_class =
      context.decision.classed != 0 ? class_of_next(context) : context.traffic_class;
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
  if (!response) {
    if (context.decision.classed != 0) [[unlikely]] {
      RequesterPart::put_class(qp, *packet, in_class);
    } else {
      qp.sent_class = context.traffic_class;
    }
  }
  const std::uint32_t bytes = packet->wire_bytes;
  const bool acknowledged = !response && !qp.unreliable;
  if (acknowledged) context.inflight_bytes += bytes;
  context.sent_total += bytes;
  context.sent_since_event += bytes;
  if (qp.requester.rate_limited && !response) [[unlikely]]
    requester_->charge_limit(qp, bytes);
  // The last answer before a refusal: with it the queue pair has failed, and left the ring.
  if (!qp.active) [[unlikely]]
    return packet;

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
    bool sent_apart = false;
    // What is to go in line waits behind what is built so far: the burst ends there.
    while (count < limit && (ready_mask_ & bit) != 0 && !waits_in_line(traffic_class)) {
      const std::uint32_t index = pop_ready(traffic_class);
      CongestionContext& context = core_.contexts[index];
      context.in_rings = static_cast<std::uint8_t>(context.in_rings & ~bit);
      if (context.place != ContextPlace::ready) continue;  // a stale entry
      if (context.decision.classed != 0) [[unlikely]] {
        if (parked(index, context, traffic_class)) continue;
      } else if (context.traffic_class != traffic_class) [[unlikely]] {
        // It waited here while its classes changed, or the slot's last owner did.
        take_own_turn(index, context);
        continue;
      }
      if (wake_due(context)) {
        cc::Event event;
        event.signal = cc::Signal::tick;
        deliver(index, event);  // puts it back where it belongs
        continue;
      }
      Packet* packet = send_one(index, context);
      if (packet != nullptr && packet->traffic_class != traffic_class) [[unlikely]] {
        if (count != 0) offer(traffic_class, {burst.data(), count});
        count = 0;
        offer(packet->traffic_class, {&packet, 1});
        sent_apart = true;
        break;
      }
      if (packet != nullptr) burst[count++] = packet;
    }
    if (count == 0 && !sent_apart && !waits_in_line(traffic_class)) {
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
  const std::uint8_t in_rings = context.in_rings;  // stale ring entries may still name the slot
  context = CongestionContext{};
  context.in_rings = in_rings;
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
