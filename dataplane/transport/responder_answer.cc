// What the responder says: ACK, NAK, RNR NAK, atomic acknowledgements and CNPs, and the way they
// go. Answers are given in the order of their sequence numbers (InfiniBand vol. 1, 9.7.5.1): an
// acknowledgement waits until all READ responses before it have been sent, and one that follows
// while it waits replaces it (coalescing, 9.7.5.1.2: the later one acknowledges all that the
// earlier one did).
#include "dataplane/transport/requester.h"
#include "dataplane/transport/responder.h"
#include "dataplane/wire/build.h"
#include "dataplane/wire/icrc.h"
#include "dataplane/wire/patch.h"

namespace paceline::transport {

void ResponderPart::acknowledge(QueuePair& qp, Psn psn, wire::Aeth aeth, bool becn) {
  ResponderState& r = qp.responder;
  // Under selective repeat only what ends the connection must come after the READ responses.
  const bool fatal = aeth.kind() == wire::AethKind::nak;
  if (qp.responder.selective && !(fatal && r.responses.any_due())) {
    qp.selective->receive.answer_due = true;
    if (!aeth.is_ack()) qp.selective->receive.refusal = aeth;
    return;
  }
  if (r.responses.any_due()) [[unlikely]] {
    r.answer_due = true;
    r.answer_psn = psn;
    r.answer = aeth;
    r.answer_becn = r.answer_becn || becn;
    return;
  }
  send_acknowledge(qp, psn, aeth, becn);
}

void ResponderPart::send_acknowledge(QueuePair& qp, Psn psn, wire::Aeth aeth, bool becn) {
  if (qp.responder.selective) {
    send_xack(qp, aeth.is_ack() ? psn + 1 : psn, aeth);
    return;
  }
  const bool in_line = qp.responder.in_line;
  const wire::HeaderTemplate& header = in_line ? qp.header : core_.peers[qp.peer].control;
  const bool coalesces = core_.config.coalesce_acks && aeth.is_ack() && !in_line && !becn;
  EngineCore::WaitingAck* const waiting =
      coalesces ? &core_.waiting_acks[core_.qp_slot(qp.number) % EngineCore::kWaitingAcks]
                : nullptr;
  if (waiting != nullptr && waiting->qp == &qp) {
    wire::build_acknowledge(header, wire::HeaderBuffer{waiting->packet->header}, qp.remote_number,
                            psn, aeth, becn);
    ++core_.counters.acks_coalesced;
    return;
  }
  Packet* packet = core_.alloc_headers_only();
  if (packet == nullptr) return;  // as if lost: the requester asks again
  packet->header_bytes = static_cast<std::uint16_t>(wire::build_acknowledge(
      header, wire::HeaderBuffer{packet->header}, qp.remote_number, psn, aeth, becn));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  if (aeth.is_ack()) ++core_.counters.acks_sent;
  if (waiting != nullptr) {
    *waiting = {&qp, packet};
    core_.acks_waiting = true;
  }
  send_answer(qp, packet);
}

void ResponderPart::send_atomic_acknowledge(QueuePair& qp, const ResponderResource& resource) {
  Packet* packet = core_.alloc_headers_only();
  if (packet == nullptr) return;
  const bool in_line = qp.responder.in_line;
  const wire::HeaderTemplate& header = in_line ? qp.header : core_.peers[qp.peer].control;
  packet->header_bytes = static_cast<std::uint16_t>(wire::build_atomic_acknowledge(
      header, wire::HeaderBuffer{packet->header}, qp.remote_number, resource.first_psn,
      ack_of(qp, resource.msn), resource.original));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  ++core_.counters.acks_sent;
  send_answer(qp, packet);
}

// Answers go ahead of all data, in the class of control packets; but for a queue pair that has
// answered READs. There, an answer that overtook the responses before it would tell the requester
// that they are lost. Its answers take the way of its data: same class, same path, behind what was
// sent before.
void ResponderPart::send_answer(QueuePair& qp, Packet* packet) {
  if (!qp.responder.in_line) {
    core_.queue_control(packet);
    return;
  }
  wire::patch_ecn(packet->header_view(), Ecn::not_ect);
  packet->traffic_class = qp.config.traffic_class;
  if (!core_.info.computes_icrc) {
    packet->icrc = wire::icrc(packet->header_view(), qp.header.l3_offset);
  }
  core_.actions.send_in_line(packet);
}

// Whether the newest request is a READ or an atomic. Its answers are its acknowledgement; no other
// may name its sequence numbers (vol. 1, 9.7.5.1.2 coalesces acknowledgements, not responses).
// Linux soft-RoCE as a requester takes a plain acknowledgement with the last of them for the end of
// the request, whether its data has come or not.
bool ResponderPart::answered_itself(const QueuePair& qp) const {
  return qp.responder.responses.find(qp.responder.expected - 1) != nullptr;
}

// Receiver not ready. The packets already behind the one put off are no gap: they are dropped
// without a NAK, until the expected one comes again.
void ResponderPart::put_off(QueuePair& qp) {
  ResponderState& r = qp.responder;
  ++core_.counters.rnr_sent;
  r.nak_sent = true;
  acknowledge(qp, r.expected, wire::Aeth::rnr_nak(r.msn, qp.config.min_rnr_timer), false);
}

// The receive request that the message in progress has taken ends with an error.
void ResponderPart::fail_receive(QueuePair& qp, CompletionStatus status) {
  ResponderState& r = qp.responder;
  if (!r.receive_taken) return;
  r.receive_taken = false;
  Completion completion;
  completion.wr_id = r.receive.wr_id;
  completion.at = core_.now;
  completion.qp_number = qp.number;
  completion.status = status;
  completion.opcode = CompletionOpcode::receive;
  core_.complete(qp.config.receive_cq, completion);
}

// A request that can never succeed: answer once, then the queue pair is in error (9.9.2). Requests
// before it are answered first.
void ResponderPart::refuse(QueuePair& qp, wire::NakCode code) {
  ResponderState& r = qp.responder;
  ++core_.counters.error_naks_sent;
  core_.events.push({code == wire::NakCode::remote_access_error ? AsyncEventKind::qp_access_error
                                                                : AsyncEventKind::qp_request_error,
                     qp.number});
  r.in_message = false;
  acknowledge(qp, r.expected, wire::Aeth::nak(r.msn, code), false);
  if (r.answer_due) {
    r.halts |= responder_halt::condemned;
  } else {
    requester_.fail(qp, CompletionStatus::flushed);
  }
}

ResponderPart::Outcome ResponderPart::refuse_packet(QueuePair& qp, wire::NakCode code) {
  ++core_.counters.dropped_refused;
  refuse(qp, code);
  return Outcome::done;
}

// Responses asked for again whose request is not kept any more. At once when one is forgotten: what
// is to be sent next may be asked for in the midst of anything.
void ResponderPart::drop_stale_repairs(QueuePair& qp) {
  if (!qp.responder.selective) return;
  FixedRing<ResponseAsk>& repairs = qp.selective->receive.repairs;
  while (!repairs.empty() && qp.responder.responses.find(repairs.front().first) == nullptr) {
    disown(qp, repairs.front().bytes);
    repairs.pop();
  }
}

void ResponderPart::update_response_ready(QueuePair& qp) {
  ResponderState& r = qp.responder;
  drop_stale_repairs(qp);
  const bool repairs = r.selective && !qp.selective->receive.repairs.empty();
  qp.response_ready = (r.responses.any_due() || repairs) && !r.response_waits;
}

// All that may be answered now; settles whether a READ response is the next thing to be sent.
void ResponderPart::give_due(QueuePair& qp) {
  ResponderState& r = qp.responder;
  while (r.responses.any_due() && r.responses.serving().atomic) {
    send_atomic_acknowledge(qp, r.responses.serving());
    r.responses.advance();
  }
  update_response_ready(qp);
  if (r.responses.any_due() || !r.answer_due) return;
  r.answer_due = false;
  // A NAK of what has come since is none any more.
  const bool outdated = (r.halts & responder_halt::condemned) == 0 && !r.answer.is_ack() &&
                        r.answer_psn != r.expected;
  if (outdated) {
    // What is not due any more has just been answered.
    if (!answered_itself(qp)) {
      send_acknowledge(qp, r.expected - 1, ack_of(qp, r.msn), r.answer_becn);
    }
  } else {
    send_acknowledge(qp, r.answer_psn, r.answer, r.answer_becn);
  }
  r.answer_becn = false;
  if ((r.halts & responder_halt::condemned) != 0) {
    requester_.fail(qp, CompletionStatus::flushed);
  }
}

void ResponderPart::on_marked(QueuePair& qp) {
  ResponderState& r = qp.responder;
  ++core_.counters.rx_ce_packets;
  if (core_.config.cnp_in_ack) return;
  if (core_.peers[qp.peer].echo != EcnEcho::cnp) return;
  if (r.last_cnp.count >= 0 && core_.now - r.last_cnp < core_.config.cnp_interval) return;
  Packet* packet = core_.alloc_headers_only();
  if (packet == nullptr) return;
  r.last_cnp = core_.now;
  const wire::HeaderTemplate& header = core_.peers[qp.peer].control;
  packet->header_bytes = static_cast<std::uint16_t>(
      wire::build_cnp(header, wire::HeaderBuffer{packet->header}, qp.remote_number));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  ++core_.counters.cnps_sent;
  ++qp.counters.cnps_sent;
  core_.queue_control(packet);
}

}  // namespace paceline::transport
