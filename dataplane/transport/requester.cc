#include "dataplane/transport/requester.h"

#include <algorithm>

#include "dataplane/transport/queue_pair_figures.h"

namespace paceline::transport {

namespace {

// Nothing can come after this answer: the peer's queue pair is in error.
bool is_fatal(wire::Aeth aeth) {
  return aeth.kind() == wire::AethKind::nak && aeth.nak_code() != wire::NakCode::psn_sequence_error;
}

}  // namespace

// Everything before `next` has arrived; `next` lies in (una_psn, max_psn].
std::uint64_t RequesterPart::advance(QueuePair& qp, Psn next) {
  RequesterState& r = qp.requester;
  CongestionContext& context = core_.contexts[qp.context];
  if (before(r.next_psn, next)) {
    // We had gone back, but the packets had arrived: no need to send them again.
    const Span skipped = span_between(qp, r.cursor, r.next_psn, next);
    r.backlog_bytes -= skipped.payload;
    context.backlog_bytes -= skipped.payload;
    const Span flown = span_between(qp, r.queue.head(), r.una_psn, r.next_psn);
    r.inflight_bytes -= flown.wire;
    context.inflight_bytes -= flown.wire;
    r.next_psn = next;
    while (r.cursor != r.queue.tail()) {
      const SendEntry& entry = r.queue.at(r.cursor);
      const auto packet = static_cast<std::uint32_t>(distance(next, entry.first_psn));
      if (packet < entry.packets) {
        r.cursor_packet = packet;
        break;
      }
      if (entry.answered) ++r.answers_due;  // until it is popped
      ++r.cursor;
      r.cursor_packet = 0;
    }
    r.una_psn = next;
    return flown.wire;
  }
  const Span acked = span_between(qp, r.queue.head(), r.una_psn, next);
  r.inflight_bytes -= acked.wire;
  context.inflight_bytes -= acked.wire;
  r.una_psn = next;
  return acked.wire;
}

std::uint64_t RequesterPart::rewind(QueuePair& qp) {
  RequesterState& r = qp.requester;
  CongestionContext& context = core_.contexts[qp.context];
  const Span lost = span_between(qp, r.queue.head(), r.una_psn, r.next_psn);
  r.backlog_bytes += lost.payload;
  context.backlog_bytes += lost.payload;
  r.inflight_bytes -= lost.wire;
  context.inflight_bytes -= lost.wire;
  r.next_psn = r.una_psn;
  r.cursor = r.queue.head();
  r.cursor_packet =
      r.queue.empty()
          ? 0
          : static_cast<std::uint32_t>(distance(r.una_psn, r.queue.at(r.cursor).first_psn));
  r.since_ack_request = core_.config.ack_every;  // the first packet sent again asks how things are
  r.probe_active = false;
  r.answers_due = 0;
  if (r.ordered != 0) check_order(qp);
  return lost.wire;
}

// `next` as in advance().
std::uint64_t RequesterPart::progress(QueuePair& qp, Psn next) {
  RequesterState& r = qp.requester;
  const std::uint64_t acked = advance(qp, next);
  r.retries_left = qp.config.retry_count;
  r.rnr_left = qp.config.rnr_retry;
  r.gap_known = false;
  const bool ordered = r.ordered != 0;
  complete_before(qp, next);
  if (r.inflight_bytes != 0) {
    arm_timer(qp);
  } else {
    r.timeout_at = kNever;
  }
  if (ordered) {
    check_order(qp);
    check_drained(qp);
    core_.actions.settle(qp);
  } else if (qp.active && r.cursor == r.queue.tail() && !qp.response_ready) {
    // What was about to be sent again had arrived after all: nothing may be left to send.
    core_.actions.stop(qp);
  }
  return acked;
}

void RequesterPart::complete_before(QueuePair& qp, Psn next) {
  RequesterState& r = qp.requester;
  const bool ordered = r.ordered != 0;
  while (!r.queue.empty()) {
    const SendEntry& entry = r.queue.front();
    if (distance(next, entry.first_psn) < static_cast<std::int32_t>(entry.packets)) break;
    if (ordered) {
      if (entry.answered || entry.request.fence) --r.ordered;
      if (entry.answered && !r.selective) --r.answers_due;
    }
    if (!entry.answered) qp.counters.tx_bytes += entry.request.length;
    if (entry.request.signaled) {
      ++qp.counters.completions;
      Completion completion;
      completion.wr_id = entry.request.wr_id;
      completion.bytes = entry.request.length;
      completion.at = core_.now;
      completion.qp_number = qp.number;
      completion.opcode = completion_opcode(entry.request.opcode);
      core_.complete(qp.config.send_cq, completion);
    }
    r.queue.pop();
  }
}

void RequesterPart::report_ack(QueuePair& qp, std::uint64_t acked, std::uint32_t rtt_ns,
                               std::uint32_t marked_bytes, std::uint32_t host_delay_ns,
                               const IntStack* int_stack) {
  if (acked == 0) return;
  const CongestionContext& context = core_.contexts[qp.context];
  if (context.wants_ack(rtt_ns, core_.config.base_rtt_ns)) {
    cc::Event& event = core_.actions.deliver(qp.context, int_stack);
    event.signal = cc::Signal::ack;
    event.acked_bytes = static_cast<std::uint32_t>(acked);
    event.rtt_ns = rtt_ns;
    event.marked_bytes = marked_bytes;
    event.host_delay_ns = host_delay_ns;
  }
  if (context.place == ContextPlace::blocked) core_.actions.released(qp.context);
}

void RequesterPart::on_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed) {
  RequesterState& r = qp.requester;
  if (!can_send(qp.state)) return;
  if (!parsed.ext.aeth.is_ack() && take_goodbye(qp, parsed.ext.aeth, parsed.psn)) return;
  if (r.selective) [[unlikely]] {
    take_acknowledge(qp, parsed);
    return;
  }
  const wire::Aeth aeth = parsed.ext.aeth;
  const bool is_ack = aeth.kind() == wire::AethKind::ack;
  // An ACK covers its own PSN; a NAK names the first packet that is missing (or refused).
  const Psn next = is_ack ? parsed.psn + 1 : parsed.psn;
  if (before(next, r.una_psn) || before(r.max_psn, next)) {
    ++core_.counters.stale_acks;
    return;
  }
  if (parsed.becn) {
    ++core_.counters.becns_received;
    on_cnp(qp);
  }
  if (is_ack) take_credits(qp, aeth);
  // Nothing new: an ACK of what was acknowledged before; a NAK of a packet that was not sent yet,
  // or that is about to be sent again because of an earlier NAK or a timeout.
  const bool repeats = next == r.una_psn && (is_ack || r.next_psn == r.una_psn);
  if (repeats || (!is_ack && next == r.max_psn)) {
    ++core_.counters.stale_acks;
    return;
  }
  std::uint32_t rtt_ns = 0;
  if (r.probe_active && before(r.probe_psn, next)) {
    rtt_ns = sample_rtt(r.probe_sent);
    r.probe_active = false;
    if (rtt_ns != 0) {
      r.min_rtt_ns = r.min_rtt_ns == 0 ? rtt_ns : std::min(r.min_rtt_ns, rtt_ns);
      r.srtt_ns = r.srtt_ns == 0 ? rtt_ns : r.srtt_ns - r.srtt_ns / 8 + rtt_ns / 8;
    }
  }
  // What is answered by more than an acknowledgement is complete with its last response only: an
  // acknowledgement of something behind it says that responses were lost (9.7.5.1.1).
  bool lost = false;
  Psn end = next;
  if (r.ordered != 0) {
    if (const SendEntry* entry = unanswered_before(qp, next)) {
      lost = true;
      end = before(entry->first_psn, r.una_psn) ? r.una_psn : entry->first_psn;
    }
  }
  std::uint64_t acked = 0;
  if (end != r.una_psn) acked = progress(qp, end);
  if (lost && !is_fatal(aeth)) {
    report_ack(qp, acked, 0);
    answers_lost(qp);
    return;
  }
  if (is_ack) {
    report_ack(qp, acked, rtt_ns);
    return;
  }

  if (aeth.kind() == wire::AethKind::rnr_nak) {
    ++core_.counters.rnr_received;
    ++qp.counters.rnr_received;
    if (r.rnr_left == 0) {
      fail(qp, CompletionStatus::rnr_retry_exceeded);
      return;
    }
    if (qp.config.rnr_retry != 7) --r.rnr_left;  // 7: for ever
    // All before it has arrived, and it has, too: nothing is being lost. Some responders (Linux
    // soft-RoCE) add a sequence NAK for the packets behind it, each time; those that come when the
    // next try is under way must not add up to a dead path.
    r.retries_left = qp.config.retry_count;
    rewind(qp);
    r.timeout_at = kNever;
    r.blocked_until = core_.now + wire::rnr_timer(aeth.value());
    core_.actions.settle(qp);
    core_.actions.released(qp.context);  // others of the context may use its window
    set_timer(qp, r.blocked_until);
    return;
  }
  switch (aeth.nak_code()) {
    case wire::NakCode::psn_sequence_error: {
      ++core_.counters.naks_received;
      ++qp.counters.naks_received;
      if (r.retries_left == 0) {
        fail(qp, CompletionStatus::retry_exceeded);
        return;
      }
      --r.retries_left;
      const std::uint64_t lost = rewind(qp);
      core_.actions.resume(qp);
      cc::Event& event = core_.actions.deliver(qp.context);
      event.signal = cc::Signal::nack;
      event.lost_bytes = static_cast<std::uint32_t>(lost);
      event.acked_bytes = static_cast<std::uint32_t>(acked);
      return;
    }
    case wire::NakCode::remote_access_error:
      ++core_.counters.error_naks_received;
      fail(qp, CompletionStatus::remote_access_error, parsed.psn);
      return;
    case wire::NakCode::remote_operational_error:
      ++core_.counters.error_naks_received;
      fail(qp, CompletionStatus::remote_operational_error, parsed.psn);
      return;
    case wire::NakCode::invalid_request:
    case wire::NakCode::invalid_rd_request:
      ++core_.counters.error_naks_received;
      fail(qp, CompletionStatus::remote_invalid_request, parsed.psn);
      return;
  }
}

// A round trip in which the host stood still says nothing of the network.
std::uint32_t RequesterPart::sample_rtt(Picos sent_at) {
  if (core_.spans_stop(sent_at)) [[unlikely]] {
    ++core_.stops.samples_dropped;
    return 0;
  }
  Picos answered = core_.now;
  if (core_.stamped) [[unlikely]] {
    const bool possible = core_.arrived > sent_at;
    if (possible) answered = core_.arrived;
    ++(possible ? core_.stamps.samples : core_.stamps.refused);
  }
  return static_cast<std::uint32_t>((answered - sent_at).count / 1000);
}

// A NAK of what was not even sent: the far queue pair is no more (ResponderPart::say_goodbye).
// Others send no such thing; by the book (vol. 1, 9.7.5.1.1) it would be dropped as a ghost.
bool RequesterPart::take_goodbye(QueuePair& qp, wire::Aeth aeth, Psn expected) {
  const RequesterState& r = qp.requester;
  if (aeth.kind() != wire::AethKind::nak || expected != r.next_psn || r.una_psn != r.next_psn ||
      aeth.nak_code() != wire::NakCode::remote_operational_error) {
    return false;
  }
  fail(qp, CompletionStatus::remote_operational_error, expected);
  core_.events.push({AsyncEventKind::qp_fatal, qp.number});
  return true;
}

void RequesterPart::on_cnp(QueuePair& qp) {
  ++core_.counters.cnps_received;
  ++qp.counters.cnps_received;
  cc::Event& event = core_.actions.deliver(qp.context);
  event.signal = cc::Signal::cnp;
}

void RequesterPart::set_timer(QueuePair& qp, Picos at) {
  if (at >= kNoTimeout) return;
  const std::uint32_t index = core_.qp_index(qp);
  // Deadlines mostly move later: the entry stays where it is and is re-armed when it fires.
  if (core_.qp_timers.contains(index) && core_.qp_timers.deadline_of(index) <= at) return;
  core_.qp_timers.schedule(index, at);
}

void RequesterPart::arm_timer(QueuePair& qp) {
  qp.requester.timeout_at = core_.awake() + qp.config.retransmit_timeout;
  set_timer(qp, core_.awake_to_time(qp.requester.timeout_at));
}

// What a rest may be made up for with, as time at the rate.
Picos RequesterPart::limit_burst(const RequesterState& r) const {
  if (!r.rate_limited) return Picos{0};
  return later(serialization_time(r.rate_burst, r.rate_limit), core_.config.pacing_catch_up);
}

void RequesterPart::limit_rate(QueuePair& qp, Rate rate, std::uint32_t burst_bytes) {
  RequesterState& r = qp.requester;
  r.rate_limited = rate.bps != 0;
  r.rate_limit = rate;
  r.rate_burst = burst_bytes;
  r.rate_next = core_.now - limit_burst(r);  // it may begin with all of the burst
}

// rate_next is when all that was sent would have been sent at the rate; after a rest it lags behind
// by as much as may be made up for. Who is beyond it waits.
void RequesterPart::charge_limit(QueuePair& qp, std::uint32_t bytes) {
  RequesterState& r = qp.requester;
  r.rate_next =
      later(r.rate_next, core_.now - limit_burst(r)) + serialization_time(bytes, r.rate_limit);
  if (r.rate_next <= core_.now) return;
  r.blocked_until = later(r.blocked_until, r.rate_next);
  set_timer(qp, r.blocked_until);
}

void RequesterPart::on_timer(QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (!can_send(qp.state)) return;
  if (r.selective) [[unlikely]] {
    on_selective_timer(qp);
    return;
  }
  if (r.blocked_until > core_.now) {
    set_timer(qp, r.blocked_until);
    return;
  }
  if (r.timeout_at > core_.awake()) {
    if (r.timeout_at != kNever) set_timer(qp, core_.awake_to_time(r.timeout_at));
    core_.actions.resume_announced(qp);  // an RNR back-off may have ended
    return;
  }
  r.timeout_at = kNever;
  if (r.inflight_bytes == 0) return;
  if (r.response_waits) {  // the answer is here, it is our own memory that is late
    arm_timer(qp);
    return;
  }
  ++core_.counters.timeouts;
  ++qp.counters.timeouts;
  if (r.retries_left == 0) {
    fail(qp, CompletionStatus::retry_exceeded);
    return;
  }
  --r.retries_left;
  r.gap_known = false;
  const std::uint64_t lost = rewind(qp);
  core_.actions.resume(qp);
  cc::Event& event = core_.actions.deliver(qp.context);
  event.signal = cc::Signal::timeout;
  event.lost_bytes = static_cast<std::uint32_t>(lost);
}

void RequesterPart::drop_work(QueuePair& qp) {
  core_.pool.end_loans();  // the memory is its owner's again
  RequesterState& r = qp.requester;
  if (qp.config.type == QpType::ud) {
    drop_datagrams(qp);
    return;
  }
  ResponderState& responder = qp.responder;
  CongestionContext& context = core_.contexts[qp.context];
  const bool had_work = qp.active || r.backlog_bytes + responder.backlog_bytes != 0;
  qp.counters.tx_bytes += sent_of_queued(qp);  // none of it will be counted when it is over
  context.inflight_bytes -= r.inflight_bytes;
  context.backlog_bytes -= r.backlog_bytes + responder.backlog_bytes;
  r.inflight_bytes = 0;
  r.backlog_bytes = 0;
  r.timeout_at = kNever;
  r.queue.clear();
  r.cursor = r.queue.tail();
  r.cursor_packet = 0;
  r.next_psn = r.una_psn = r.max_psn = r.tail_psn;
  r.stops = 0;
  r.answers_due = 0;
  r.ordered = 0;
  r.credit_limited = false;
  r.draining = r.drained = false;
  if (qp.selective != nullptr) qp.selective->receive.repairs.clear();
  if (r.selective) reset_selective(qp);
  responder.backlog_bytes = 0;
  responder.responses.clear();
  responder.answer_due = false;
  qp.response_ready = false;
  core_.actions.dropped(qp);
  // An algorithm that asks the peer for a rate must hear that there is no need any more.
  if (had_work) core_.actions.idle(qp.context);
}

void RequesterPart::fail(QueuePair& qp, CompletionStatus status, Psn psn) {
  if (qp.state == QpState::error) return;
  core_.pool.end_loans();  // before the owner of the memory is told
  const bool received = can_receive(qp.state);
  qp.state = QpState::error;
  Completion completion;
  completion.at = core_.now;
  completion.qp_number = qp.number;
  // One request carries the reason, the others are flushed (vol. 1, 10.3.1.7).
  const SendQueue& queue = qp.requester.queue;
  bool named = false;
  for (std::uint32_t p = queue.head(); p != queue.tail(); ++p) {
    const SendEntry& entry = queue.at(p);
    const bool here =
        !named && distance(psn, entry.first_psn) < static_cast<std::int32_t>(entry.packets);
    named = named || here;
    completion.wr_id = entry.request.wr_id;
    completion.opcode = completion_opcode(entry.request.opcode);
    completion.status = here ? status : CompletionStatus::flushed;
    core_.complete(qp.config.send_cq, completion);
  }
  completion.opcode = CompletionOpcode::receive;
  completion.status = CompletionStatus::flushed;
  if (qp.responder.receive_taken) {
    qp.responder.receive_taken = false;
    completion.wr_id = qp.responder.receive.wr_id;
    core_.complete(qp.config.receive_cq, completion);
  }
  // What others share is left to them.
  if (ReceiveQueue* receives = qp.config.receive_queue; receives != nullptr) {
    ReceiveRequest request;
    while (!receives->shared() && receives->take(request, qp.responder.receive_segments.data())) {
      completion.wr_id = request.wr_id;
      core_.complete(qp.config.receive_cq, completion);
    }
    if (receives->shared() && received)
      core_.events.push({AsyncEventKind::last_wqe_reached, qp.number});
  }
  if (qp.context != kNoIndex || qp.config.type == QpType::ud) drop_work(qp);
}

}  // namespace paceline::transport
