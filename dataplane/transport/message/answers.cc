#include "dataplane/transport/message/answers.h"

#include <algorithm>

#include "dataplane/transport/message/qp_failure.h"
#include "dataplane/wire/extensions/xack.h"
#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"
#include "dataplane/wire/packet/patch.h"

namespace paceline::transport {

// The largest code that promises no more than there is. A shared queue promises nothing to anybody.
// The MSN does not count the message in progress yet, but the message has its receive request.
wire::Aeth Answers::ack_of(const QueuePair& qp, std::uint32_t msn) {
  if (!qp.responder.tells_credits) [[likely]]
    return wire::Aeth::ack(msn);
  const std::size_t credits =
      qp.config.receive_queue->size() + (qp.responder.receive_taken ? 1 : 0);
  std::uint8_t code = wire::kCreditUnlimited - 1;
  while (wire::credits_from_code(code) > credits) --code;
  return wire::Aeth::ack(msn, code);
}

void Answers::acknowledge(EngineCore& core, QueuePair& qp, Psn psn, wire::Aeth aeth, bool becn) {
  ResponderState& r = qp.responder;
  // Under selective repeat, only an answer that ends the connection must follow the READ responses.
  const bool fatal = aeth.kind() == wire::AethKind::nak;
  if (qp.responder.selective && !(fatal && r.responses.any_due())) {
    PendingXack& xack = qp.selective->receive.xack;
    aeth.is_ack() ? xack.want() : xack.want(aeth);
    return;
  }
  if (r.responses.any_due()) [[unlikely]] {
    r.answer.put(psn, aeth, becn);
    return;
  }
  send_acknowledge(core, qp, psn, aeth, becn);
}

void Answers::send_acknowledge(EngineCore& core, QueuePair& qp, Psn psn, wire::Aeth aeth,
                               bool becn) {
  if (qp.responder.selective) {
    send_xack(core, qp, aeth.is_ack() ? psn + 1 : psn, aeth);
    return;
  }
  const AnswerWay way = qp.responder.answers;
  const wire::HeaderTemplate& header =
      way == AnswerWay::data ? qp.header : core.peers[qp.peer].control;
  const bool coalesces =
      core.config.coalesce_acks && aeth.is_ack() && way == AnswerWay::control && !becn;
  EngineCore::WaitingAck* const waiting =
      coalesces ? &core.waiting_acks[core.qp_slot(qp.number) % EngineCore::kWaitingAcks] : nullptr;
  if (waiting != nullptr && waiting->qp == &qp) {
    wire::build_acknowledge(header, wire::HeaderBuffer{waiting->packet->header}, qp.remote_number,
                            psn, aeth, becn);
    ++core.counters.acks_coalesced;
    return;
  }
  Packet* packet = core.alloc_headers_only();
  if (packet == nullptr) return;  // as if lost: the requester asks again
  packet->header_bytes = static_cast<std::uint16_t>(wire::build_acknowledge(
      header, wire::HeaderBuffer{packet->header}, qp.remote_number, psn, aeth, becn));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  if (aeth.is_ack()) ++core.counters.acks_sent;
  if (waiting != nullptr) {
    *waiting = {&qp, packet};
    core.acks_waiting = true;
  }
  send_answer(core, qp, packet);
}

void Answers::send_atomic_acknowledge(EngineCore& core, QueuePair& qp,
                                      const ResponderResource& resource) {
  Packet* packet = core.alloc_headers_only();
  if (packet == nullptr) return;
  const bool with_data = qp.responder.answers == AnswerWay::data;
  const wire::HeaderTemplate& header = with_data ? qp.header : core.peers[qp.peer].control;
  packet->header_bytes = static_cast<std::uint16_t>(wire::build_atomic_acknowledge(
      header, wire::HeaderBuffer{packet->header}, qp.remote_number, resource.first_psn,
      ack_of(qp, resource.msn), resource.original));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  ++core.counters.acks_sent;
  send_answer(core, qp, packet);
}

// Answers go ahead of all data, in the class of control packets, unless the queue pair has answered
// READs. Then an answer that overtook earlier responses would tell the requester that they are
// lost. So its answers go with its data: same class, same path, behind what was sent before.
void Answers::send_answer(EngineCore& core, QueuePair& qp, Packet* packet) {
  if (qp.responder.answers == AnswerWay::control) {
    core.queue_control(packet);
  } else {
    send_otherwise(core, qp, packet);
  }
}

void Answers::send_otherwise(EngineCore& core, QueuePair& qp, Packet* packet) {
  if (qp.responder.answers == AnswerWay::control_xrc) {
    // The template belongs to the peer, and is for RC.
    packet->header[packet->bth_offset] |= std::byte{wire::kXrcBits};
    core.queue_control(packet);
    return;
  }
  wire::patch_ecn(packet->header_view(), Ecn::not_ect);
  packet->traffic_class = qp.config.traffic_class;
  if (!core.info.computes_icrc) {
    packet->icrc = wire::icrc(packet->header_view(), qp.header.l3_offset);
  }
  core.actions.send_in_line(packet);
}

// Whether the newest request is a READ or an atomic. Its responses are its acknowledgement; no
// other may name its sequence numbers (vol. 1, 9.7.5.1.2 coalesces acknowledgements, not
// responses). Linux soft-RoCE as a requester takes a plain acknowledgement of the last of them for
// the end of the request, even if its data has not come.
bool Answers::answered_itself(const QueuePair& qp) {
  return qp.responder.responses.find(qp.responder.position.expected() - 1) != nullptr;
}

void Answers::tell_gap(EngineCore& core, QueuePair& qp, bool becn) {
  ReceivePosition& position = qp.responder.position;
  if (!position.tell_gap()) return;
  ++core.counters.naks_sent;
  acknowledge(core, qp, position.expected(),
              wire::Aeth::nak(position.msn(), wire::NakCode::psn_sequence_error), becn);
}

// Receiver not ready. Packets already behind the refused one are not a gap: they are dropped
// without a NAK, until the expected one comes again.
void Answers::not_ready(EngineCore& core, QueuePair& qp) {
  ReceivePosition& position = qp.responder.position;
  ++core.counters.rnr_sent;
  position.put_off();
  acknowledge(core, qp, position.expected(),
              wire::Aeth::rnr_nak(position.msn(), qp.config.min_rnr_timer), false);
}

// A request that can never succeed is answered once; then the queue pair is in error (9.9.2).
// Earlier requests are answered first.
void Answers::refuse(EngineCore& core, QueuePair& qp, wire::NakCode code) {
  ResponderState& r = qp.responder;
  ++core.counters.error_naks_sent;
  core.events.push({code == wire::NakCode::remote_access_error ? AsyncEventKind::qp_access_error
                                                               : AsyncEventKind::qp_request_error,
                    qp.number});
  r.message.close();
  acknowledge(core, qp, r.position.expected(), wire::Aeth::nak(r.position.msn(), code), false);
  if (r.answer.due()) {
    r.halts |= responder_halt::error_pending;
  } else {
    QpFailure::fail(core, qp, CompletionStatus::flushed);
  }
}

RequestOutcome Answers::refuse_packet(EngineCore& core, QueuePair& qp, wire::NakCode code) {
  ++core.counters.dropped_refused;
  refuse(core, qp, code);
  return RequestOutcome::done;
}

// Drops responses that were asked for again but whose request is no longer kept. This happens as
// soon as a request is forgotten: the next packet may be asked for at any moment.
void Answers::drop_stale_repairs(EngineCore& core, QueuePair& qp) {
  if (!qp.responder.selective) return;
  FixedRing<ResponseAsk>& repairs = qp.selective->receive.repairs;
  while (!repairs.empty() && qp.responder.responses.find(repairs.front().first) == nullptr) {
    take_back(core, qp, repairs.front().bytes);
    repairs.pop();
  }
}

void Answers::update_response_ready(EngineCore& core, QueuePair& qp) {
  ResponderState& r = qp.responder;
  drop_stale_repairs(core, qp);
  const bool repairs = r.selective && !qp.selective->receive.repairs.empty();
  qp.response_ready = (r.responses.any_due() || repairs) && !r.response_waits;
}

// Gives all answers that may go now, and settles whether a READ response is sent next.
void Answers::give_due(EngineCore& core, QueuePair& qp) {
  ResponderState& r = qp.responder;
  while (r.responses.any_due() && r.responses.serving().atomic) {
    send_atomic_acknowledge(core, qp, r.responses.serving());
    r.responses.advance();
  }
  update_response_ready(core, qp);
  if (r.responses.any_due() || !r.answer.due()) return;
  const PendingAnswer::Answer answer = r.answer.take();
  // A NAK is outdated if the packet that it asked for has come since.
  const Psn expected = r.position.expected();
  const bool outdated = (r.halts & responder_halt::error_pending) == 0 && !answer.aeth.is_ack() &&
                        answer.psn != expected;
  if (outdated) {
    // The response just sent has answered what is no longer due.
    if (!answered_itself(qp))
      send_acknowledge(core, qp, expected - 1, ack_of(qp, r.position.msn()), answer.becn);
  } else {
    send_acknowledge(core, qp, answer.psn, answer.aeth, answer.becn);
  }
  if ((r.halts & responder_halt::error_pending) != 0) {
    QpFailure::fail(core, qp, CompletionStatus::flushed);
  }
}

// Gives back the bytes of responses that will not be sent after all.
void Answers::take_back(EngineCore& core, QueuePair& qp, std::uint64_t bytes) {
  qp.responder.backlog_bytes -= bytes;
  core.contexts[qp.context].backlog_bytes -= bytes;
}

void Answers::give_xack(EngineCore& core, QueuePair& qp) {
  const auto aeth = qp.selective->receive.xack.take_due(ack_of(qp, qp.responder.position.msn()));
  if (aeth) send_xack(core, qp, qp.responder.position.expected(), *aeth);
}

void Answers::send_xack(EngineCore& core, QueuePair& qp, Psn expected, wire::Aeth aeth) {
  SelectiveReceive& s = qp.selective->receive;
  if (qp.peer == kNoIndex) return;
  Packet* packet = core.alloc_headers_only();
  if (packet == nullptr) return;  // as if lost: the sender asks again
  wire::Xack xack = s.xack.take(core.now, core.peers[qp.peer].telemetry);
  xack.aeth = aeth;
  // The bits around the packet that triggered it, if they do not fit into the first ones.
  const Psn first = expected + 1;
  const std::int32_t beyond = distance(xack.trigger, first) - static_cast<int>(wire::kXackBits) + 1;
  if (beyond > 0) xack.bitmap_offset = static_cast<std::uint16_t>(beyond);
  const std::int32_t end = std::min(distance(s.early.highest(), first), s.early.window() - 1);
  for (std::uint32_t i = 0; i < wire::kXackBits; ++i) {
    const auto at = static_cast<std::int32_t>(xack.bitmap_offset + i);
    if (at >= end) break;
    if (s.early.has(first + static_cast<std::uint32_t>(at))) xack.set_bit(i);
  }
  const wire::HeaderTemplate& header = core.peers[qp.peer].control;
  packet->header_bytes = static_cast<std::uint16_t>(wire::build_xack(
      header, wire::HeaderBuffer{packet->header}, qp.remote_number, expected, xack));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  if (aeth.is_ack()) ++core.counters.acks_sent;
  core.queue_control(packet);
}

}  // namespace paceline::transport
