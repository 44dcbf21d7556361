#include "dataplane/transport/requester.h"

#include <algorithm>

#include "dataplane/transport/scheduler.h"

namespace paceline::transport {

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
  return lost.wire;
}

void RequesterPart::on_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed) {
  RequesterState& r = qp.requester;
  if (qp.state != QpState::rts) return;
  const wire::Aeth aeth = parsed.ext.aeth;
  const bool is_ack = aeth.kind() == wire::AethKind::ack;
  // An ACK covers its own PSN; a NAK names the first packet that is missing (or refused).
  const Psn next = is_ack ? parsed.psn + 1 : parsed.psn;
  if (before(next, r.una_psn) || before(r.max_psn, next)) {
    ++core_.counters.stale_acks;
    return;
  }
  if (parsed.becn) on_cnp(qp);
  // Nothing new: an ACK of what was acknowledged before; a NAK of a packet that was not sent yet,
  // or that is about to be sent again because of an earlier NAK or a timeout.
  const bool repeats = next == r.una_psn && (is_ack || r.next_psn == r.una_psn);
  if (repeats || (!is_ack && next == r.max_psn)) {
    ++core_.counters.stale_acks;
    return;
  }
  std::uint32_t rtt_ns = 0;
  if (r.probe_active && before(r.probe_psn, next)) {
    rtt_ns = static_cast<std::uint32_t>((core_.now - r.probe_sent).count / 1000);
    r.probe_active = false;
  }
  std::uint64_t acked = 0;
  if (next != r.una_psn) {
    acked = advance(qp, next);
    r.retries_left = qp.config.retry_count;
    r.rnr_left = qp.config.rnr_retry;
    while (!r.queue.empty()) {
      const SendEntry& entry = r.queue.at(r.queue.head());
      if (distance(next, entry.first_psn) < static_cast<std::int32_t>(entry.packets)) break;
      if (entry.request.signaled) {
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
    if (r.inflight_bytes != 0) {
      arm_timer(qp);
    } else {
      r.timeout_at = kNever;
    }
    // What was about to be sent again had arrived after all: nothing may be left to send.
    if (r.cursor == r.queue.tail()) scheduler_.deactivate(qp);
  }
  if (is_ack) {
    if (acked != 0) {
      if (scheduler_.wants(qp.context, cc::Signal::ack)) {
        cc::Event event;
        event.signal = cc::Signal::ack;
        event.acked_bytes = static_cast<std::uint32_t>(acked);
        event.rtt_ns = rtt_ns;
        scheduler_.deliver(qp.context, event);
      }
      CongestionContext& context = core_.contexts[qp.context];
      if (context.place == ContextPlace::blocked) scheduler_.refresh(qp.context);
    }
    return;
  }

  if (aeth.kind() == wire::AethKind::rnr_nak) {
    ++core_.counters.rnr_received;
    if (r.rnr_left == 0) {
      fail(qp, CompletionStatus::rnr_retry_exceeded);
      return;
    }
    if (qp.config.rnr_retry != 7) --r.rnr_left;  // 7: for ever
    rewind(qp);
    r.timeout_at = kNever;
    r.blocked_until = core_.now + wire::rnr_timer(aeth.value());
    scheduler_.deactivate(qp);
    if (core_.contexts[qp.context].place == ContextPlace::blocked) {
      scheduler_.refresh(qp.context);  // others of the context may use its window
    }
    set_timer(qp, r.blocked_until);
    return;
  }
  switch (aeth.nak_code()) {
    case wire::NakCode::psn_sequence_error: {
      ++core_.counters.naks_received;
      if (r.retries_left == 0) {
        fail(qp, CompletionStatus::retry_exceeded);
        return;
      }
      --r.retries_left;
      cc::Event event;
      event.signal = cc::Signal::nack;
      event.lost_bytes = static_cast<std::uint32_t>(rewind(qp));
      event.acked_bytes = static_cast<std::uint32_t>(acked);
      resume(qp);
      scheduler_.deliver(qp.context, event);
      return;
    }
    case wire::NakCode::remote_access_error:
      ++core_.counters.error_naks_received;
      fail(qp, CompletionStatus::remote_access_error);
      return;
    case wire::NakCode::remote_operational_error:
      ++core_.counters.error_naks_received;
      fail(qp, CompletionStatus::remote_operational_error);
      return;
    case wire::NakCode::invalid_request:
    case wire::NakCode::invalid_rd_request:
      ++core_.counters.error_naks_received;
      fail(qp, CompletionStatus::remote_invalid_request);
      return;
  }
}

void RequesterPart::on_cnp(QueuePair& qp) {
  ++core_.counters.cnps_received;
  cc::Event event;
  event.signal = cc::Signal::cnp;
  scheduler_.deliver(qp.context, event);
}

void RequesterPart::set_timer(QueuePair& qp, Picos at) {
  const std::uint32_t index = core_.qp_index(qp);
  // Deadlines mostly move later: the entry stays where it is and is re-armed when it fires.
  if (core_.qp_timers.contains(index) && core_.qp_timers.deadline_of(index) <= at) return;
  core_.qp_timers.schedule(index, at);
}

void RequesterPart::arm_timer(QueuePair& qp) {
  qp.requester.timeout_at = core_.now + qp.config.retransmit_timeout;
  set_timer(qp, qp.requester.timeout_at);
}

void RequesterPart::resume(QueuePair& qp) {
  if (has_work(qp)) {
    scheduler_.activate(qp);
    CongestionContext& context = core_.contexts[qp.context];
    if (context.place == ContextPlace::blocked) scheduler_.refresh(qp.context);
  }
}

void RequesterPart::on_timer(QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (qp.state != QpState::rts) return;
  if (r.blocked_until > core_.now) {
    set_timer(qp, r.blocked_until);
    return;
  }
  if (r.timeout_at > core_.now) {
    if (r.timeout_at != kNever) set_timer(qp, r.timeout_at);
    resume(qp);  // an RNR back-off may have ended
    return;
  }
  r.timeout_at = kNever;
  if (r.inflight_bytes == 0) return;
  ++core_.counters.timeouts;
  if (r.retries_left == 0) {
    fail(qp, CompletionStatus::retry_exceeded);
    return;
  }
  --r.retries_left;
  cc::Event event;
  event.signal = cc::Signal::timeout;
  event.lost_bytes = static_cast<std::uint32_t>(rewind(qp));
  resume(qp);
  scheduler_.deliver(qp.context, event);
}

void RequesterPart::memory_ready(QueuePair& qp) {
  if (!qp.requester.waiting_memory) return;
  qp.requester.waiting_memory = false;
  resume(qp);
}

void RequesterPart::fail(QueuePair& qp, CompletionStatus status) {
  if (qp.state == QpState::error) return;
  qp.state = QpState::error;
  if (qp.context == kNoIndex) return;  // never connected: nothing was posted or received
  RequesterState& r = qp.requester;
  CongestionContext& context = core_.contexts[qp.context];
  context.inflight_bytes -= r.inflight_bytes;
  context.backlog_bytes -= r.backlog_bytes;
  r.inflight_bytes = 0;
  r.backlog_bytes = 0;
  r.timeout_at = kNever;
  // The oldest request carries the reason, the others are flushed (vol. 1, 10.3.1.7).
  while (!r.queue.empty()) {
    const SendEntry& entry = r.queue.at(r.queue.head());
    Completion completion;
    completion.wr_id = entry.request.wr_id;
    completion.at = core_.now;
    completion.qp_number = qp.number;
    completion.opcode = completion_opcode(entry.request.opcode);
    completion.status = status;
    core_.complete(qp.config.send_cq, completion);
    status = CompletionStatus::flushed;
    r.queue.pop();
  }
  r.cursor = r.queue.tail();
  r.cursor_packet = 0;
  r.next_psn = r.una_psn = r.max_psn = r.tail_psn;
  // Receives that are still queued are flushed by the owner of the queue (it may be shared), but
  // the one that a message had taken is known here only.
  if (qp.responder.receive_taken) {
    qp.responder.receive_taken = false;
    Completion completion;
    completion.wr_id = qp.responder.receive.wr_id;
    completion.at = core_.now;
    completion.qp_number = qp.number;
    completion.opcode = CompletionOpcode::receive;
    completion.status = CompletionStatus::flushed;
    core_.complete(qp.config.receive_cq, completion);
  }
  scheduler_.deactivate(qp);
  // Its bytes in flight may have been what held up others of the same context.
  if (context.place == ContextPlace::blocked) scheduler_.refresh(qp.context);
}

}  // namespace paceline::transport
