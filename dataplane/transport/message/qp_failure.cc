#include "dataplane/transport/message/qp_failure.h"

#include "dataplane/transport/message/scoreboard.h"
#include "dataplane/transport/qp/queue_pair_figures.h"

namespace paceline::transport {

void QpFailure::drop_datagrams(EngineCore& core, QueuePair& qp) {
  RequesterState& r = qp.requester;
  core.actions.dropped(qp);
  for (; !r.queue.empty(); r.queue.pop()) {
    const QueuedRequest& request = r.queue.front().request;
    AddressHandle& handle = core.handles[request.address_handle >> 8];
    core.contexts[handle.context].backlog_bytes -= request.length;
    --handle.uses;
    core.actions.idle(handle.context);
  }
  r.position.start(r.tail_psn, r.queue.tail());
  r.backlog_bytes = 0;
  r.stops = 0;
  r.ordering_constraints = 0;
  r.drain.end();
}

void QpFailure::drop_work(EngineCore& core, QueuePair& qp) {
  core.pool.end_loans();  // the memory belongs to its owner again
  RequesterState& r = qp.requester;
  if (qp.config.type == QpType::ud) {
    drop_datagrams(core, qp);
    return;
  }
  ResponderState& responder = qp.responder;
  CongestionContext& context = core.contexts[qp.context];
  const bool had_work = qp.active || r.backlog_bytes + responder.backlog_bytes != 0;
  qp.counters.tx_bytes += sent_of_queued(qp);  // these requests will not be counted at their end
  context.inflight_bytes -= r.inflight_bytes;
  context.backlog_bytes -= r.backlog_bytes + responder.backlog_bytes;
  r.inflight_bytes = 0;
  r.backlog_bytes = 0;
  r.timeout_at = kNever;
  r.queue.clear();
  r.position.start(r.tail_psn, r.queue.tail());
  r.stops = 0;
  r.outstanding_reads = 0;
  r.ordering_constraints = 0;
  r.credit_limited = false;
  r.drain.end();
  if (qp.selective != nullptr) qp.selective->receive.repairs.clear();
  if (r.selective) Scoreboard::reset(core, qp);
  responder.backlog_bytes = 0;
  responder.responses.clear();
  responder.answer.drop();
  qp.response_ready = false;
  core.actions.dropped(qp);
  // An algorithm that asks the peer for a rate must be told that it no longer needs one.
  if (had_work) core.actions.idle(qp.context);
}

void QpFailure::drop_early(EngineCore& core, QueuePair& qp) {
  if (!qp.responder.selective) return;
  while (Packet* held = qp.selective->receive.early.release_any()) {
    ++core.counters.wrong_state;
    core.pool.free(held);
  }
}

void QpFailure::fail(EngineCore& core, QueuePair& qp, CompletionStatus status, Psn psn) {
  if (qp.state == QpState::error) return;
  core.pool.end_loans();  // before the owner of the memory is told
  const bool received = can_receive(qp.state);
  qp.state = QpState::error;
  drop_early(core, qp);
  // One request carries the reason, the others are flushed (vol. 1, 10.3.1.7).
  const SendQueue& queue = qp.requester.queue;
  bool named = false;
  for (std::uint32_t p = queue.head(); p != queue.tail(); ++p) {
    const SendEntry& entry = queue.at(p);
    const bool here =
        !named && distance(psn, entry.first_psn) < static_cast<std::int32_t>(entry.packets);
    named = named || here;
    core.complete_send(qp, entry.request, here ? status : CompletionStatus::flushed);
  }
  Completion completion;
  completion.at = core.now;
  completion.qp_number = qp.number;
  completion.opcode = CompletionOpcode::receive;
  completion.status = CompletionStatus::flushed;
  if (qp.responder.receive_taken) {
    qp.responder.receive_taken = false;
    completion.wr_id = qp.responder.receive.wr_id;
    completion.srq_number = qp.responder.srq_number;
    core.complete(qp.config.receive_cq, completion);
  }
  // A shared queue keeps its requests for the others.
  if (ReceiveQueue* receives = qp.config.receive_queue; receives != nullptr) {
    ReceiveRequest request;
    while (!receives->shared() && receives->take(request, qp.responder.receive_segments.data())) {
      completion.wr_id = request.wr_id;
      core.complete(qp.config.receive_cq, completion);
    }
    if (receives->shared() && received)
      core.events.push({AsyncEventKind::last_wqe_reached, qp.number});
  }
  if (qp.context != kNoIndex || qp.config.type == QpType::ud) drop_work(core, qp);
}

// The receive request that the message in progress has taken ends with an error.
void QpFailure::fail_receive(EngineCore& core, QueuePair& qp, CompletionStatus status) {
  ResponderState& r = qp.responder;
  if (!r.receive_taken) return;
  r.receive_taken = false;
  Completion completion;
  completion.wr_id = r.receive.wr_id;
  completion.at = core.now;
  completion.qp_number = qp.number;
  completion.status = status;
  completion.opcode = CompletionOpcode::receive;
  completion.srq_number = r.srq_number;
  core.complete(qp.config.receive_cq, completion);
}

// A request failed for a local reason. Under a reliable service the connection ends. Under an
// unreliable one only the send queue fails, until it is led back from SQE (10.3.1.6).
void QpFailure::fail_sends(EngineCore& core, QueuePair& qp, CompletionStatus status) {
  if (!qp.unreliable) {
    fail(core, qp, status, qp.requester.position.next());
    return;
  }
  RequesterState& r = qp.requester;
  for (std::uint32_t p = r.queue.head(); p != r.queue.tail(); ++p) {
    core.complete_send(qp, r.queue.at(p).request, status);
    status = CompletionStatus::flushed;
  }
  qp.state = QpState::sqe;
  drop_work(core, qp);
}

}  // namespace paceline::transport
