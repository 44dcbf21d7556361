// Decides which context sends next: contexts wait in the deadline queue until their time, then in
// the ready ring of their class (round robin), and their queue pairs share them by deficit round
// robin. Delivers events to the algorithms and applies what they decide.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>

#include "cc/event.h"
#include "dataplane/pacing/deadline_queue.h"
#include "dataplane/transport/engine_core.h"

namespace paceline::transport {

class ControlPlane;
class RequesterPart;
class ResponderPart;

class alignas(64) Scheduler {
 public:
  explicit Scheduler(EngineCore& core) : core_(core) {}
  void connect(RequesterPart& requester, ResponderPart& responder, ControlPlane& control) {
    requester_ = &requester;
    responder_ = &responder;
    control_ = &control;
  }

  // --- contexts ---
  // A new context with Signal::start delivered.
  std::uint32_t create_context(cc::AlgorithmId algorithm, std::uint8_t traffic_class,
                               std::uint32_t peer, const cc::Handover* handover);
  void destroy_context(std::uint32_t index);
  // Another algorithm takes the context over, with all that waits and is in flight.
  void replace_algorithm(std::uint32_t index, cc::AlgorithmId algorithm,
                         const cc::Handover& handover);
  // Work that was posted before is the context's, taken over or to be sent again: its algorithm
  // hears of it like of a message.
  void announce_backlog(std::uint32_t index);

  // Tells the algorithm and applies its decision. `event` needs only what is special to it; totals
  // are filled in here. Signals the algorithm does not want are dropped.
  void deliver(std::uint32_t index, cc::Event& event);

  // The queue pair has packets to send (again) / has none for now.
  void activate(QueuePair& qp);
  void deactivate(QueuePair& qp);
  // The one or the other, as things are.
  void settle(QueuePair& qp) {
    if (!has_work(qp)) {
      deactivate(qp);
      return;
    }
    const bool waited = !qp.active;
    activate(qp);
    if (qp.response_ready) note_response(qp);
    if (waited && core_.contexts[qp.context].backlog_bytes == 0) announce_bare(qp);
  }
  // Requests or READ responses may go out now.
  bool has_work(const QueuePair& qp) const;
  // UD, and not active: the queue pair moves to where its next datagram goes.
  void retarget(QueuePair& qp);
  // Tells the algorithm, if it wants to know, when the context has nothing left to send.
  void report_idle(std::uint32_t index);

  // Takes ownership. Sent in order behind the data of its class that was built before, and ahead of
  // all that is built later; not paced.
  void send_in_line(Packet* packet);

  // Something that bounds the context changed (window, ceiling, work): puts it where it belongs.
  void refresh(std::uint32_t index) { refresh(index, core_.contexts[index]); }

  // The algorithm in charge of the context wants to hear of it.
  bool wants(std::uint32_t index, cc::Signal signal) const {
    return (core_.contexts[index].wants & cc::signal_bit(signal)) != 0;
  }
  bool wants_ack(std::uint32_t index, std::uint32_t rtt_ns) const {
    constexpr std::uint32_t kAll = cc::signal_bit(cc::Signal::ack);
    const std::uint32_t wants = core_.contexts[index].wants & (kAll | cc::kWantsRoundTrips);
    if (wants == 0) return false;
    // Who wants round trips alone wants those in which something waited.
    return (wants & kAll) != 0 || rtt_ns / 2 > core_.config.base_rtt_ns;
  }

  bool due() const {
    return earlier(pacer_.next_deadline_settled(), timers_.next_deadline_settled()) <= core_.now;
  }
  bool has_ready() const { return (ready_mask_ | stalled_mask_) != 0; }

  // One context is ready, with no more than fits into a packet, and nothing waits in front of it.
  bool sends_little() const {
    if (stalled_mask_ != 0 || !std::has_single_bit(ready_mask_)) return false;
    const ClassRings& rings = rings_[static_cast<unsigned>(std::countr_zero(ready_mask_))];
    return rings.urgent.count == 0 && rings.ready.count == 1 &&
           core_.contexts[rings.ready.front].backlog_bytes <= core_.config.payload_mtu;
  }

  // Moves contexts whose time has come to the ready rings and runs the timers of algorithms.
  void run_due();
  // Sends while the port accepts. Control packets were sent before.
  void send();

  // Earliest time at which run_due or send has work; kNever when none.
  Picos next_deadline() const {
    const Picos next = earlier(pacer_.next_deadline_settled(), timers_.next_deadline_settled());
    return has_ready() ? earlier(next, next_send()) : next;
  }

  // --- looking ahead: changes nothing ---
  // What polls read of this first; what the next calls read.
  void prefetch() const {
    prefetch_line(this);
    prefetch_line(&rings_[kDefaultDataClass]);
  }
  void prefetch_deadlines() const { pacer_.prefetch(); }
  // Whose turn it is likely to be next; any context when there is none.
  std::uint32_t likely_next() const {
    const std::uint32_t mask = ready_mask_;
    return mask != 0 ? rings_[std::bit_width(mask) - 1].ready.front : pacer_.likely_first();
  }

  // Frees packets that a port refused; for the end of the engine.
  void discard();

  // Closes the time share of the limiter in force, for reports.
  void settle_limiter(CongestionContext& context) const;

 private:
  Picos next_send() const;
  static std::uint64_t bare_backlog(const QueuePair& qp);
  void announce_bare(const QueuePair& qp);
  void refresh(std::uint32_t index, CongestionContext& context);
  static bool window_full(const CongestionContext& context) {
    return context.inflight_bytes >= context.decision.window_bytes;
  }
  bool response_first(CongestionContext& context);
  void note_response(const QueuePair& qp);
  void apply(std::uint32_t index, CongestionContext& context, Rate rate_before,
             const cc::Event& event);
  void set_limiter(CongestionContext& context, cc::Limiter limiter) {
    if (context.limiter == limiter) return;
    settle_limiter(context);
    context.limiter = limiter;
  }
  std::uint8_t class_of_next(const CongestionContext& context) const;
  bool parked(std::uint32_t index, CongestionContext& context, unsigned ring);
  void push_ready(std::uint32_t index, CongestionContext& context, unsigned ring);
  void take_own_turn(std::uint32_t index, CongestionContext& context);
  std::uint32_t pop_ready(unsigned traffic_class);
  bool wake_due(const CongestionContext& context) const;
  bool ceiling_reached(const CongestionContext& context) const;
  // READ responses and requests of a queue pair share its turns byte by byte.
  bool picks_response(const QueuePair& qp) const;
  std::uint32_t next_wire_bytes(const QueuePair& qp) const;
  void share_turns(QueuePair& qp, std::uint32_t bytes, bool response);
  Picos spacing(const CongestionContext& context, std::uint32_t bytes, bool acknowledged) const;
  Packet* send_one(std::uint32_t index, CongestionContext& context);
  void offer(unsigned traffic_class, std::span<Packet* const> burst);
  bool flush_stalled(unsigned traffic_class);
  // The mask first: it says no, mostly, and is at hand.
  bool waits_in_line(unsigned traffic_class) const {
    return (stalled_mask_ >> traffic_class & 1U) != 0 && !in_line_[traffic_class].empty();
  }
  void rotate(CongestionContext& context);
  std::uint32_t quantum() const;

  // A FIFO of context indices; grows only when contexts are created. The first entry is kept apart:
  // mostly there is no other.
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
  std::uint32_t stalled_mask_ = 0;  // classes with packets stalled or in line behind them
  std::uint32_t working_ = 0;       // contexts with queue pairs that have work
  RequesterPart* requester_ = nullptr;
  ResponderPart* responder_ = nullptr;
  ControlPlane* control_ = nullptr;
  std::array<ClassRings, kTrafficClasses> rings_;
  // Packets that a port refused although it had said it would take them, oldest first.
  std::array<PacketFifo, kTrafficClasses> stalled_;
  std::array<PacketFifo, kTrafficClasses> in_line_;  // sent behind those
};

}  // namespace paceline::transport
