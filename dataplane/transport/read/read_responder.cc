#include "dataplane/transport/read/read_responder.h"

#include <algorithm>

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/message/answers.h"
#include "dataplane/transport/message/qp_failure.h"
#include "dataplane/wire/packet/build.h"

namespace paceline::transport {

namespace {

std::uint64_t offset_of(const QueuePair& qp, std::uint32_t response) {
  return std::uint64_t{response} * qp.mtu;
}

// The payload of the responses from `from` on.
std::uint64_t rest_of(const QueuePair& qp, const ResponderResource& resource, std::uint32_t from) {
  return resource.length - std::min(resource.length, offset_of(qp, from));
}

bool is_read(const wire::ParsedPacket& parsed) {
  return parsed.properties.operation == wire::Operation::read_request;
}

}  // namespace

// The READ or atomic request that was expected.
RequestOutcome ReadResponder::accept(EngineCore& core, QueuePair& qp,
                                     const wire::ParsedPacket& parsed) {
  ResponderState& r = qp.responder;
  // Not allowed within another message (9.7.4.1.5), nor beyond the agreed number at a time
  // (9.7.4.1.3). Under selective repeat, the oldest one may be in progress once more in vain: its
  // requester has all of it, or it would not ask for more.
  if (qp.responder.selective && r.responses.depth() != 0 && !r.responses.has_room()) {
    const ResponderResource dropped = r.responses.drop_oldest();
    if (!dropped.atomic) Answers::take_back(core, qp, rest_of(qp, dropped, dropped.next));
    Answers::update_response_ready(core, qp);
    core.actions.settle(qp);
  }
  if (r.message.open() || !r.responses.has_room()) {
    Answers::refuse(core, qp, wire::NakCode::invalid_request);
    return RequestOutcome::done;
  }
  ResponderResource resource;
  resource.first_psn = parsed.psn;
  if (is_read(parsed)) {
    if (!accept_read(core, qp, parsed, resource)) return RequestOutcome::done;
  } else {
    if (accept_atomic(core, qp, parsed, resource) == RequestOutcome::pending)
      return RequestOutcome::pending;
    if (qp.state == QpState::error || (r.halts & responder_halt::error_pending) != 0) {
      return RequestOutcome::done;
    }
  }
  r.position.accept(resource.packets);
  // It counts when it is accepted (C9-148); a READ of several requests counts with the last of them
  // (docs/wire-protocol.md).
  const bool goes_on = r.selective && is_read(parsed) && parsed.solicited;
  if (!goes_on) r.position.complete_message();
  resource.msn = r.position.msn();
  r.answer.drop();  // the answer to this one also acknowledges everything before it
  ++core.counters.rx_data_packets;
  if (const ResponderResource* old = r.responses.outlived(); old != nullptr && !old->atomic)
    Answers::take_back(core, qp, rest_of(qp, *old, old->next));
  r.responses.add(resource);
  Answers::drop_stale_repairs(core, qp);
  if (qp.responder.selective) {
    qp.selective->receive.xack.want();
    if (!qp.selective->receive.read_by_any_path) [[unlikely]]
      qp.selective->receive.note_read(parsed.udp_source_port);
  } else if (!resource.atomic) {
    r.answers = AnswerWay::data;
  }
  if (!resource.atomic) add_response(core, qp, resource.length);
  Answers::give_due(core, qp);
  core.actions.settle(qp);
  return RequestOutcome::done;
}

// False when the request was refused.
bool ReadResponder::accept_read(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed,
                                ResponderResource& resource) {
  const wire::Reth& reth = parsed.ext.reth;
  if (reth.length > kMaxMessageBytes) {
    Answers::refuse(core, qp, wire::NakCode::invalid_request);
    return false;
  }
  if (reth.length != 0) {  // without bytes, the key is not checked (9.7.4.1.4)
    const Region* region = core.regions.find(reth.rkey);
    if (region == nullptr || (qp.config.access & access::remote_read) == 0 ||
        !region->grants_peer(qp.number, qp.config.pd, access::remote_read, reth.address,
                             reth.length)) {
      Answers::refuse(core, qp, wire::NakCode::remote_access_error);
      return false;
    }
  }
  const std::uint64_t packets = (std::uint64_t{reth.length} + qp.mtu - 1) / qp.mtu;
  resource.packets = static_cast<std::uint32_t>(std::max<std::uint64_t>(packets, 1));
  resource.rkey = reth.rkey;
  resource.pd = qp.config.pd;
  resource.address = reth.address;
  resource.length = reth.length;
  return true;
}

// Runs the atomic. Pending: memory answers later, nothing has happened. Done: it ran, or was
// refused.
RequestOutcome ReadResponder::accept_atomic(EngineCore& core, QueuePair& qp,
                                            const wire::ParsedPacket& parsed,
                                            ResponderResource& resource) {
  const wire::AtomicEth& request = parsed.ext.atomic;
  if (request.address % kAtomicBytes != 0) {  // 9.4.5: aligned, or an invalid request
    Answers::refuse(core, qp, wire::NakCode::invalid_request);
    return RequestOutcome::done;
  }
  const Region* region = core.regions.find(request.rkey);
  if (region == nullptr || (qp.config.access & access::remote_atomic) == 0 ||
      !region->grants_peer(qp.number, qp.config.pd, access::remote_atomic, request.address,
                           kAtomicBytes)) {
    Answers::refuse(core, qp, wire::NakCode::remote_access_error);
    return RequestOutcome::done;
  }
  AtomicOperation operation;
  operation.compare_swap = parsed.properties.operation == wire::Operation::compare_swap;
  operation.compare = request.compare;
  operation.swap_add = request.swap_add;
  resource.atomic = true;
  switch (run_atomic(*region, {qp.number, true}, request.address, operation, resource.original)) {
    case MemoryResult::done:
      break;
    case MemoryResult::pending:
      return RequestOutcome::pending;
    case MemoryResult::fault:
      Answers::refuse(core, qp, wire::NakCode::remote_access_error);
      break;
  }
  return RequestOutcome::done;
}

// A request that was accepted before has come again. An honest requester has at most as many
// requests in progress as are kept, so a request that is not kept is a ghost, and is dropped.
void ReadResponder::repeat(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed) {
  core.pool.end_loans();  // its responses will soon be in flight a second time
  ResponderState& r = qp.responder;
  ResponderResource* resource = r.responses.find(parsed.psn);
  if (resource == nullptr || resource->atomic == is_read(parsed)) {
    ++core.counters.ghost_requests;
    return;
  }
  const auto index = static_cast<std::uint32_t>(distance(parsed.psn, resource->first_psn));
  if (resource->atomic) {
    if (resource->due()) return;       // on its way
    r.responses.repeat(*resource, 0);  // not run again (9.7.5.1.3)
    Answers::give_due(core, qp);
    return;
  }
  if (qp.responder.selective) {
    repeat_responses(core, qp, parsed, *resource, index);
    return;
  }
  // All of it, or its rest from some response on (9.7.4.3.1).
  const wire::Reth& reth = parsed.ext.reth;
  if (reth.rkey != resource->rkey || reth.address != resource->address + offset_of(qp, index) ||
      reth.length != rest_of(qp, *resource, index)) {
    ++core.counters.ghost_requests;
    return;
  }
  const std::uint32_t due_from = resource->next;
  if (due_from <= index) return;  // all that is asked for is still to come
  const std::uint64_t again = rest_of(qp, *resource, index) - rest_of(qp, *resource, due_from);
  r.responses.repeat(*resource, index);
  add_response(core, qp, again);
  cc::Event& event = core.actions.deliver(qp.context);
  event.signal = cc::Signal::nack;
  event.lost_bytes = static_cast<std::uint32_t>(again);
  Answers::give_due(core, qp);
  core.actions.settle(qp);
}

// Selective repeat: some responses in the middle are asked for. Responses that are still to be sent
// for the first time are not sent twice.
void ReadResponder::repeat_responses(EngineCore& core, QueuePair& qp,
                                     const wire::ParsedPacket& parsed,
                                     const ResponderResource& resource, std::uint32_t index) {
  SelectiveReceive& s = qp.selective->receive;
  const wire::Reth& reth = parsed.ext.reth;
  const std::uint64_t mtu = qp.mtu;
  auto count =
      static_cast<std::uint32_t>(std::max<std::uint64_t>((reth.length + mtu - 1) / mtu, 1));
  if (reth.rkey != resource.rkey || reth.address != resource.address + offset_of(qp, index) ||
      count > resource.packets - index ||
      reth.length != std::min(count * mtu, rest_of(qp, resource, index))) {
    ++core.counters.ghost_requests;
    return;
  }
  if (index >= resource.next || s.repairs.full()) return;
  for (std::uint32_t p = s.repairs.head(); p != s.repairs.tail(); ++p) {
    const std::int32_t within = distance(parsed.psn, s.repairs.at(p).first);
    if (within >= 0 && within < static_cast<std::int32_t>(s.repairs.at(p).count)) return;
  }
  count = std::min(count, resource.next - index);
  ResponseAsk run;
  run.first = parsed.psn;
  run.count = count;
  run.bytes = rest_of(qp, resource, index) - rest_of(qp, resource, index + count);
  s.repairs.push(run);
  add_response(core, qp, run.bytes);
  cc::Event& event = core.actions.deliver(qp.context);
  event.signal = cc::Signal::nack;
  event.lost_bytes = static_cast<std::uint32_t>(run.bytes);
  Answers::give_due(core, qp);
  core.actions.settle(qp);
}

// The response to send next: a missing one before those of the first run. Requires
// qp.response_ready.
ReadResponder::NextResponse ReadResponder::next_response(const QueuePair& qp) {
  const ResponseQueue& responses = qp.responder.responses;
  if (qp.responder.selective && !qp.selective->receive.repairs.empty()) {
    const ResponseAsk& run = qp.selective->receive.repairs.front();
    const ResponderResource& resource = *responses.find(run.first);
    return {&resource, static_cast<std::uint32_t>(distance(run.first, resource.first_psn)),
            !run.begun, run.count == 1, true};
  }
  const ResponderResource& resource = responses.serving();
  return {&resource, resource.next, resource.next == resource.begin,
          resource.next + 1 == resource.packets, false};
}

// Response bytes are to be sent: they are work for the queue pair's congestion context.
void ReadResponder::add_response(EngineCore& core, QueuePair& qp, std::uint64_t bytes) {
  qp.responder.backlog_bytes += bytes;
  core.contexts[qp.context].backlog_bytes += bytes;
  cc::Event& event = core.actions.deliver(qp.context);
  event.signal = cc::Signal::message;
  event.message_bytes = std::max<std::uint64_t>(bytes, 1);  // see CongestionManager::deliver
}

std::uint32_t ReadResponder::next_wire_bytes(const EngineCore& core, const QueuePair& qp) {
  const NextResponse next = next_response(qp);
  const auto payload = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(qp.mtu, rest_of(qp, *next.resource, next.index)));
  const auto aeth = static_cast<std::uint32_t>(next.first || next.last ? wire::Aeth::kBytes : 0);
  const std::uint32_t frame = qp.header.header_bytes + aeth + ((payload + 3U) & ~3U) + 8U;
  return core.info.wire.wire_bytes(frame, payload);
}

bool ReadResponder::build(EngineCore& core, QueuePair& qp, Packet& packet) {
  ResponderState& r = qp.responder;
  const NextResponse run = next_response(qp);
  const ResponderResource& resource = *run.resource;
  const std::uint32_t index = run.index;
  if (qp.responder.selective) {
    wire::set_source_port(qp.header, qp.selective->receive.read_by_any_path
                                         ? core.next_path(*qp.selective)
                                         : qp.path.source_port);
  }
  const auto payload =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(qp.mtu, rest_of(qp, resource, index)));
  const Psn psn = resource.first_psn + index;
  packet.payload_bytes = 0;
  packet.payload_kind = PayloadKind::none;
  if (payload != 0) {
    const std::uint64_t address = resource.address + offset_of(qp, index);
    const Region* region = core.regions.find(resource.rkey);
    MemoryResult result = MemoryResult::fault;  // deregistered or revoked meanwhile
    if (region != nullptr &&
        region->grants_peer(qp.number, resource.pd, access::remote_read, address, payload)) {
      // Only once: see Requester::fill_payload.
      if (core.info.lends_payload && !run.repair && index >= resource.sent &&
          lend_payload(*region, address, payload, core.pool, packet)) {
        core.counters.tx_lent_bytes += payload;
        result = MemoryResult::done;
      } else {
        result = load_payload(*region, {qp.number, true}, address, payload, address, packet);
      }
    }
    if (result == MemoryResult::pending) {
      r.response_waits = true;
      qp.response_ready = false;
      ++core.counters.memory_waits;
      return false;
    }
    if (result == MemoryResult::fault) {
      ++core.counters.error_naks_sent;
      Answers::send_acknowledge(
          core, qp, psn, wire::Aeth::nak(resource.msn, wire::NakCode::remote_access_error), false);
      QpFailure::fail(core, qp, CompletionStatus::flushed);
      return false;
    }
  }

  const bool first = run.first;
  const bool last = run.last;
  wire::TransportFields fields;
  fields.opcode =
      first ? (last ? wire::Opcode::rc_read_response_only : wire::Opcode::rc_read_response_first)
            : (last ? wire::Opcode::rc_read_response_last : wire::Opcode::rc_read_response_middle);
  fields.dest_qpn = qp.remote_number;
  fields.psn = psn;
  fields.payload_bytes = payload;
  packet.header_bytes = static_cast<std::uint16_t>(wire::build_read_response(
      qp.header, wire::HeaderBuffer{packet.header}, fields, Answers::ack_of(qp, resource.msn)));
  core.finish_packet(qp, packet, payload);

  if (!run.repair && index >= resource.sent) {
    core.count_data(qp.peer);
    core.counters.tx_data_bytes += payload;
    qp.counters.tx_bytes += payload;
  } else {
    core.count_retransmitted(qp);
    core.counters.retransmitted_bytes += payload;
  }
  r.backlog_bytes -= payload;
  core.contexts[qp.context].backlog_bytes -= payload;
  if (run.repair) {
    FixedRing<ResponseAsk>& repairs = qp.selective->receive.repairs;
    ResponseAsk& front = repairs.front();
    front.begun = true;
    front.first = front.first + 1;
    front.bytes -= payload;
    if (--front.count == 0) repairs.pop();
  } else {
    r.responses.advance();
  }
  if (last) Answers::give_due(core, qp);
  return true;
}

}  // namespace paceline::transport
