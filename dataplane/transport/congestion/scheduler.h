// Decides which context sends next. Contexts wait in the deadline queue until their time, then in
// the ready ring of their class (round robin); their queue pairs share them by deficit round robin.
// The scheduler asks queue pairs for the length of their next packet, and changes only their turn.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>

#include "dataplane/pacing/deadline_queue.h"
#include "dataplane/transport/congestion/port_backlog.h"
#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

inline bool window_full(const CongestionContext& context) {
  return context.inflight_bytes >= context.decision.window_bytes;
}
// Requests and READ responses share the queue pair's turns: the next packet is a response.
bool response_is_next(const EngineCore& core, const QueuePair& qp);

class alignas(64) Scheduler {
 public:
  explicit Scheduler(EngineCore& core) : core_(core) {}

  // Makes room for this many contexts. Allocates.
  void reserve(std::uint32_t contexts);
  // The context no longer has a deadline, a timer or a place.
  void remove(std::uint32_t index);

  // The queue pair has packets to send (again) / has none for now.
  void activate(QueuePair& qp);
  void deactivate(QueuePair& qp);
  // Something that bounds the context changed (window, ceiling, work): puts it where it belongs.
  void place(std::uint32_t index) { place(index, core_.contexts[index]); }
  void place(std::uint32_t index, CongestionContext& context);
  // The queue pair, which is active, has READ responses to send: no window holds them back.
  void note_response(const QueuePair& qp);
  // A new decision is in force: its timer, and when the next packet may go.
  void take_decision(std::uint32_t index, CongestionContext& context, Rate rate_before);

  // --- what a queue pair would send next ---
  // Requests or READ responses may go out now.
  bool has_work(const QueuePair& qp) const;
  // Its next packet is a READ response. These and requests share its turns byte by byte.
  bool sends_response(const QueuePair& qp, const CongestionContext& context) const {
    return response_is_next(core_, qp) || (qp.response_ready && window_full(context));
  }
  std::uint8_t class_of_next(const CongestionContext& context) const;

  // --- sending ---
  std::uint32_t ready_classes() const { return ready_mask_; }
  // Requires an entry of that class. The context may have left its place since (a stale entry).
  std::uint32_t pop_ready(unsigned traffic_class);
  // Moves the context to the ring of its own class: it was found in another one.
  void take_own_turn(std::uint32_t index, CongestionContext& context);
  // The context's next packet needs a class that the port does not take now: it waits in that ring.
  bool parked(std::uint32_t index, CongestionContext& context, unsigned ring);
  bool wake_due(const CongestionContext& context) const;
  // The context's queue pair has sent a packet. Call charge() first; then, while the queue pair is
  // active, pace(); and end_turn() if it still has work.
  struct Sent {
    std::uint32_t wire_bytes = 0;
    bool acknowledged = false;  // in flight until the peer says so
    bool response = false;
  };
  void charge(CongestionContext& context, const Sent& sent) const {
    if (sent.acknowledged) context.inflight_bytes += sent.wire_bytes;
    context.sent_total += sent.wire_bytes;
    context.sent_since_event += sent.wire_bytes;
  }
  void pace(CongestionContext& context, const Sent& sent) const;
  void end_turn(QueuePair& qp, CongestionContext& context, const Sent& sent);
  // Nothing can be sent for `delay`.
  void postpone(std::uint32_t index, CongestionContext& context, Picos delay) {
    context.next_send = core_.now + delay;
    place(index, context);
  }
  PortBacklog& backlog() { return backlog_; }
  const PortBacklog& backlog() const { return backlog_; }

  // --- time ---
  bool due() const {
    return earlier(pacer_.next_deadline_settled(), timers_.next_deadline_settled()) <= core_.now;
  }
  static constexpr std::uint32_t kNone = pacing::DeadlineQueue::kNone;
  // A context whose time has come, each once; kNone: no more.
  std::uint32_t pop_paced() { return pacer_.pop_due(core_.now); }
  // The same for decisions with `timed`.
  std::uint32_t pop_timed() {
    const std::uint32_t index = timers_.pop_due(core_.now);
    if (index != kNone) core_.contexts[index].timer_set = false;
    return index;
  }
  bool has_ready() const { return (ready_mask_ | backlog_.classes()) != 0; }
  // One context is ready, with at most a packet's payload left, and nothing waits in front of it.
  bool sends_little() const {
    if (backlog_.classes() != 0 || !std::has_single_bit(ready_mask_)) return false;
    const ClassRings& rings = rings_[static_cast<unsigned>(std::countr_zero(ready_mask_))];
    return rings.urgent.count == 0 && rings.ready.count == 1 &&
           core_.contexts[rings.ready.front].backlog_bytes <= core_.config.payload_mtu;
  }
  // Earliest time at which a context is due or something can be sent; kNever when none.
  [[gnu::always_inline]] Picos next_deadline() const {
    const Picos next = earlier(pacer_.next_deadline_settled(), timers_.next_deadline_settled());
    return has_ready() ? earlier(next, next_send()) : next;
  }

  // --- looking ahead: changes nothing ---
  // Prefetches what polls read first, and what the next calls read.
  void prefetch() const {
    prefetch_line(this);
    prefetch_line(&rings_[kDefaultDataClass]);
  }
  void prefetch_deadlines() const { pacer_.prefetch(); }
  // The context whose turn is likely to be next; any context if there is none.
  std::uint32_t likely_next() const {
    const std::uint32_t mask = ready_mask_;
    return mask != 0 ? rings_[std::bit_width(mask) - 1].ready.front : pacer_.likely_first();
  }

  // Closes the time share of the limiter in force, for reports.
  void settle_limiter(CongestionContext& context) const;

 private:
  // When the port is ready, if something is to be sent. Every look for a deadline calls this, so it
  // is inlined.
  [[gnu::always_inline]] Picos next_send() const {
    Picos next = kNever;
    std::uint32_t mask = ready_mask_ | backlog_.classes();
    while (mask != 0) {
      const auto traffic_class = static_cast<unsigned>(std::bit_width(mask)) - 1;
      mask &= ~(1U << traffic_class);
      // Packets that the port refused although it was ready are offered again a little later.
      const Picos ready = core_.port.tx_ready_at(static_cast<std::uint8_t>(traffic_class));
      next = earlier(next, later(ready, core_.now + Picos{1}));
    }
    return next;
  }
  void set_limiter(CongestionContext& context, cc::Limiter limiter) {
    if (context.limiter == limiter) return;
    settle_limiter(context);
    context.limiter = limiter;
  }
  void push_ready(std::uint32_t index, CongestionContext& context, unsigned ring);

  // A FIFO of context indices; it grows only when contexts are created. The first entry is kept
  // apart: mostly there is no other.
  struct ReadyRing {
    std::uint32_t front = 0;
    std::uint32_t count = 0;
    std::uint32_t head = 0;  // of the entries behind the front
    std::uint32_t size = 0;  // of slots
    std::unique_ptr<std::uint32_t[]> slots;
    void push(std::uint32_t index) {
      if (count++ == 0) {
        front = index;
        return;
      }
      std::uint32_t slot = head + count - 2;
      if (slot >= size) slot -= size;
      slots[slot] = index;
    }
    std::uint32_t pop() {
      const std::uint32_t index = front;
      if (--count != 0) {
        front = slots[head];
        if (++head == size) head = 0;
      }
      return index;
    }
    void grow(std::uint32_t entries);  // unrolls into a larger ring
  };
  struct alignas(64) ClassRings {
    ReadyRing urgent;  // served first
    ReadyRing ready;
  };

  EngineCore& core_;
  pacing::DeadlineQueue pacer_;   // context -> earliest of next send and (while paced) wake_at
  pacing::DeadlineQueue timers_;  // context -> wake_at of decisions with `timed`
  std::uint32_t ready_mask_ = 0;
  std::uint32_t working_ = 0;  // contexts with queue pairs that have work
  PortBacklog backlog_;
  std::array<ClassRings, kTrafficClasses> rings_;
};

}  // namespace paceline::transport
