#include "dataplane/transport/message/ack_progress.h"

#include "dataplane/transport/message/qp_failure.h"
#include "dataplane/transport/message/request_order.h"
#include "dataplane/transport/message/requester_timer.h"
#include "dataplane/transport/message/send_window.h"

namespace paceline::transport {

// `next` as in SendWindow::advance().
std::uint64_t AckProgress::progress(EngineCore& core, QueuePair& qp, Psn next) {
  RequesterState& r = qp.requester;
  const std::uint64_t acked = SendWindow::advance(core, qp, next);
  r.retries.renew(qp.config.retry_count, qp.config.rnr_retry);
  r.gap_known = false;
  const bool ordered = r.ordering_constraints != 0;
  SendWindow::complete_before(core, qp, next);
  if (r.inflight_bytes != 0) {
    RequesterTimer::arm(core, qp);
  } else {
    r.timeout_at = kNever;
  }
  if (ordered) {
    RequestOrder::check(qp);
    RequestOrder::check_drained(core, qp);
    core.actions.settle(qp);
  } else if (qp.active && r.position.request() == r.queue.tail() && !qp.response_ready) {
    // Packets about to be sent again had arrived after all: nothing may be left to send.
    core.actions.stop(qp);
  }
  return acked;
}

void AckProgress::report_ack(EngineCore& core, QueuePair& qp, std::uint64_t acked,
                             std::uint32_t rtt_ns, std::uint32_t marked_bytes,
                             std::uint32_t host_delay_ns, const IntStack* int_stack) {
  if (acked == 0) return;
  const CongestionContext& context = core.contexts[qp.context];
  if (context.wants_ack(rtt_ns, core.config.base_rtt_ns)) {
    cc::Event& event = core.actions.deliver(qp.context, int_stack);
    event.signal = cc::Signal::ack;
    event.acked_bytes = static_cast<std::uint32_t>(acked);
    event.rtt_ns = rtt_ns;
    event.marked_bytes = marked_bytes;
    event.host_delay_ns = host_delay_ns;
  }
  if (context.place == ContextPlace::blocked) core.actions.released(qp.context);
}

// A round trip during which the host stood still says nothing about the network.
std::uint32_t AckProgress::sample_rtt(EngineCore& core, Picos sent_at) {
  if (core.spans_stop(sent_at)) [[unlikely]] {
    ++core.stops.samples_dropped;
    return 0;
  }
  Picos answered = core.now;
  if (core.stamped) [[unlikely]] {
    const bool possible = core.arrived > sent_at;
    if (possible) answered = core.arrived;
    ++(possible ? core.stamps.samples : core.stamps.refused);
  }
  return static_cast<std::uint32_t>((answered - sent_at).count / 1000);
}

// A NAK of a packet that was never sent: the far queue pair is gone
// (Responder::send_disconnect_nak). Others do not send such a NAK; the specification (vol. 1,
// 9.7.5.1.1) drops it as a ghost.
bool AckProgress::on_disconnect_nak(EngineCore& core, QueuePair& qp, wire::Aeth aeth,
                                    Psn expected) {
  const RequesterState& r = qp.requester;
  if (aeth.kind() != wire::AethKind::nak || expected != r.position.next() ||
      r.position.oldest() != r.position.next() ||
      aeth.nak_code() != wire::NakCode::remote_operational_error) {
    return false;
  }
  QpFailure::fail(core, qp, CompletionStatus::remote_operational_error, expected);
  core.events.push({AsyncEventKind::qp_fatal, qp.number});
  return true;
}

CompletionStatus AckProgress::status_of(wire::NakCode code) {
  if (code == wire::NakCode::remote_access_error) return CompletionStatus::remote_access_error;
  return code == wire::NakCode::remote_operational_error
             ? CompletionStatus::remote_operational_error
             : CompletionStatus::remote_invalid_request;
}

void AckProgress::on_cnp(EngineCore& core, QueuePair& qp) {
  ++core.counters.cnps_received;
  ++qp.counters.cnps_received;
  cc::Event& event = core.actions.deliver(qp.context);
  event.signal = cc::Signal::cnp;
}

}  // namespace paceline::transport
