// The responder's side of READ and atomic operations (InfiniBand vol. 1, 9.7.4 to 9.7.5). A READ is
// only noted when its request arrives: its responses are data that this end sends, and are built
// one by one when the congestion context of the queue pair lets them go. An atomic operation runs
// when it arrives, once; its result is kept for as long as it may be asked for again.
#include <algorithm>

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/requester.h"
#include "dataplane/transport/responder.h"
#include "dataplane/wire/build.h"

namespace paceline::transport {

namespace {

std::uint64_t offset_of(const QueuePair& qp, std::uint32_t response) {
  return std::uint64_t{response} * qp.mtu;
}

// Payload of the responses from `from` on.
std::uint64_t rest_of(const QueuePair& qp, const ResponderResource& resource, std::uint32_t from) {
  return resource.length - std::min(resource.length, offset_of(qp, from));
}

bool is_read(const wire::ParsedPacket& parsed) {
  return parsed.properties.operation == wire::Operation::read_request;
}

}  // namespace

// The READ or atomic request that was expected.
ResponderPart::Outcome ResponderPart::accept_answered(QueuePair& qp,
                                                      const wire::ParsedPacket& parsed) {
  ResponderState& r = qp.responder;
  // Not within another message (9.7.4.1.5), nor more at a time than were agreed on (9.7.4.1.3).
  // Under selective repeat the oldest may be under way once more for nothing: its requester has it
  // all, or would not ask for more.
  if (qp.responder.selective && r.responses.depth() != 0 && !r.responses.has_room()) {
    const ResponderResource dropped = r.responses.drop_oldest();
    if (!dropped.atomic) disown(qp, rest_of(qp, dropped, dropped.next));
    update_response_ready(qp);
    core_.actions.settle(qp);
  }
  if (r.in_message || !r.responses.has_room()) {
    refuse(qp, wire::NakCode::invalid_request);
    return Outcome::done;
  }
  ResponderResource resource;
  resource.first_psn = parsed.psn;
  // A READ of several requests counts with the last of them (docs/wire-protocol.md).
  const bool goes_on = r.selective && is_read(parsed) && parsed.solicited;
  resource.msn = goes_on ? r.msn : next_msn(r.msn);
  if (is_read(parsed)) {
    if (!accept_read(qp, parsed, resource)) return Outcome::done;
  } else {
    if (accept_atomic(qp, parsed, resource) == Outcome::pending) return Outcome::pending;
    if (qp.state == QpState::error || (r.halts & responder_halt::condemned) != 0) {
      return Outcome::done;
    }
  }
  r.expected = r.expected + resource.packets;
  r.msn = resource.msn;  // a READ counts when it is accepted (C9-148)
  r.nak_sent = false;
  r.answer_due = false;  // the answer to this one acknowledges all before it, too
  ++core_.counters.rx_data_packets;
  if (const ResponderResource* old = r.responses.outlived(); old != nullptr && !old->atomic) {
    const std::uint64_t unsent = rest_of(qp, *old, old->next);
    r.backlog_bytes -= unsent;
    core_.contexts[qp.context].backlog_bytes -= unsent;
  }
  r.responses.add(resource);
  drop_stale_repairs(qp);
  if (qp.responder.selective) {
    qp.selective->receive.answer_due = true;
  } else if (!resource.atomic) {
    r.in_line = true;
  }
  if (!resource.atomic) owe(qp, resource.length);
  give_due(qp);
  core_.actions.settle(qp);
  return Outcome::done;
}

// False when it was refused.
bool ResponderPart::accept_read(QueuePair& qp, const wire::ParsedPacket& parsed,
                                ResponderResource& resource) {
  const wire::Reth& reth = parsed.ext.reth;
  if (reth.length > kMaxMessageBytes) {
    refuse(qp, wire::NakCode::invalid_request);
    return false;
  }
  if (reth.length != 0) {  // of no bytes, no key is looked at (9.7.4.1.4)
    const Region* region = core_.regions.find(reth.rkey);
    if (region == nullptr || (qp.config.access & access::remote_read) == 0 ||
        !region->grants_peer(qp.number, qp.config.pd, access::remote_read, reth.address,
                             reth.length)) {
      refuse(qp, wire::NakCode::remote_access_error);
      return false;
    }
  }
  const std::uint64_t packets = (std::uint64_t{reth.length} + qp.mtu - 1) / qp.mtu;
  resource.packets = static_cast<std::uint32_t>(std::max<std::uint64_t>(packets, 1));
  resource.rkey = reth.rkey;
  resource.address = reth.address;
  resource.length = reth.length;
  return true;
}

// Runs it. Pending: memory answers later, nothing has happened. Done: it ran, or was refused.
ResponderPart::Outcome ResponderPart::accept_atomic(QueuePair& qp, const wire::ParsedPacket& parsed,
                                                    ResponderResource& resource) {
  const wire::AtomicEth& request = parsed.ext.atomic;
  if (request.address % kAtomicBytes != 0) {  // 9.4.5: aligned, or an invalid request
    refuse(qp, wire::NakCode::invalid_request);
    return Outcome::done;
  }
  const Region* region = core_.regions.find(request.rkey);
  if (region == nullptr || (qp.config.access & access::remote_atomic) == 0 ||
      !region->grants_peer(qp.number, qp.config.pd, access::remote_atomic, request.address,
                           kAtomicBytes)) {
    refuse(qp, wire::NakCode::remote_access_error);
    return Outcome::done;
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
      return Outcome::pending;
    case MemoryResult::fault:
      refuse(qp, wire::NakCode::remote_access_error);
      break;
  }
  return Outcome::done;
}

// A request that was accepted before has come again. What is not kept any more is no repetition of
// an honest requester, which has at most as many under way as are kept: a ghost, dropped.
void ResponderPart::repeat_answer(QueuePair& qp, const wire::ParsedPacket& parsed) {
  core_.pool.end_loans();  // what it has sent is on its way a second time soon
  ResponderState& r = qp.responder;
  ResponderResource* resource = r.responses.find(parsed.psn);
  if (resource == nullptr || resource->atomic == is_read(parsed)) {
    ++core_.counters.ghost_requests;
    return;
  }
  const auto index = static_cast<std::uint32_t>(distance(parsed.psn, resource->first_psn));
  if (resource->atomic) {
    if (resource->due()) return;       // on its way
    r.responses.repeat(*resource, 0);  // not run again (9.7.5.1.3)
    give_due(qp);
    return;
  }
  if (qp.responder.selective) {
    repeat_responses(qp, parsed, *resource, index);
    return;
  }
  // The whole of it, or what is left of it from some response on (9.7.4.3.1).
  const wire::Reth& reth = parsed.ext.reth;
  if (reth.rkey != resource->rkey || reth.address != resource->address + offset_of(qp, index) ||
      reth.length != rest_of(qp, *resource, index)) {
    ++core_.counters.ghost_requests;
    return;
  }
  const std::uint32_t due_from = resource->next;
  if (due_from <= index) return;  // all that is asked for is still to come
  const std::uint64_t again = rest_of(qp, *resource, index) - rest_of(qp, *resource, due_from);
  r.responses.repeat(*resource, index);
  owe(qp, again);
  cc::Event& event = core_.actions.deliver(qp.context);
  event.signal = cc::Signal::nack;
  event.lost_bytes = static_cast<std::uint32_t>(again);
  give_due(qp);
  core_.actions.settle(qp);
}

// Selective repeat: some responses in the middle are asked for. Those that are still to be sent for
// the first time are not sent twice.
void ResponderPart::repeat_responses(QueuePair& qp, const wire::ParsedPacket& parsed,
                                     const ResponderResource& resource, std::uint32_t index) {
  SelectiveReceive& s = qp.selective->receive;
  const wire::Reth& reth = parsed.ext.reth;
  const std::uint64_t mtu = qp.mtu;
  auto count =
      static_cast<std::uint32_t>(std::max<std::uint64_t>((reth.length + mtu - 1) / mtu, 1));
  if (reth.rkey != resource.rkey || reth.address != resource.address + offset_of(qp, index) ||
      count > resource.packets - index ||
      reth.length != std::min(count * mtu, rest_of(qp, resource, index))) {
    ++core_.counters.ghost_requests;
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
  owe(qp, run.bytes);
  cc::Event& event = core_.actions.deliver(qp.context);
  event.signal = cc::Signal::nack;
  event.lost_bytes = static_cast<std::uint32_t>(run.bytes);
  give_due(qp);
  core_.actions.settle(qp);
}

// Responses that will not be sent after all.
void ResponderPart::disown(QueuePair& qp, std::uint64_t bytes) {
  qp.responder.backlog_bytes -= bytes;
  core_.contexts[qp.context].backlog_bytes -= bytes;
}

// The response that is to be sent next: a missing one before those of the first run. Requires
// qp.response_ready.
ResponderPart::NextResponse ResponderPart::next_response(const QueuePair& qp) {
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

// Response bytes that are to be sent: work for the queue pair's congestion context.
void ResponderPart::owe(QueuePair& qp, std::uint64_t bytes) {
  qp.responder.backlog_bytes += bytes;
  core_.contexts[qp.context].backlog_bytes += bytes;
  cc::Event& event = core_.actions.deliver(qp.context);
  event.signal = cc::Signal::message;
  event.message_bytes = std::max<std::uint64_t>(bytes, 1);  // see CongestionManager::deliver
}

std::uint32_t ResponderPart::next_wire_bytes(const EngineCore& core, const QueuePair& qp) {
  const NextResponse next = next_response(qp);
  const auto payload = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(qp.mtu, rest_of(qp, *next.resource, next.index)));
  const auto aeth = static_cast<std::uint32_t>(next.first || next.last ? wire::Aeth::kBytes : 0);
  const std::uint32_t frame = qp.header.header_bytes + aeth + ((payload + 3U) & ~3U) + 8U;
  return core.info.wire.wire_bytes(frame, payload);
}

bool ResponderPart::build_response(QueuePair& qp, Packet& packet) {
  ResponderState& r = qp.responder;
  const NextResponse run = next_response(qp);
  const ResponderResource& resource = *run.resource;
  const std::uint32_t index = run.index;
  if (qp.responder.selective) {
    wire::set_source_port(qp.header, qp.selective->paths.next_port());
  }
  const auto payload =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(qp.mtu, rest_of(qp, resource, index)));
  const Psn psn = resource.first_psn + index;
  packet.payload_bytes = 0;
  packet.payload_kind = PayloadKind::none;
  if (payload != 0) {
    const std::uint64_t address = resource.address + offset_of(qp, index);
    const Region* region = core_.regions.find(resource.rkey);
    MemoryResult result = MemoryResult::fault;  // deregistered or revoked under way
    if (region != nullptr &&
        region->grants_peer(qp.number, qp.config.pd, access::remote_read, address, payload)) {
      // Once: see RequesterPart::fill_payload.
      if (core_.info.lends_payload && !run.repair && index >= resource.sent &&
          lend_payload(*region, address, payload, core_.pool, packet)) {
        core_.counters.tx_lent_bytes += payload;
        result = MemoryResult::done;
      } else {
        result = load_payload(*region, {qp.number, true}, address, payload, address, packet);
      }
    }
    if (result == MemoryResult::pending) {
      r.response_waits = true;
      qp.response_ready = false;
      ++core_.counters.memory_waits;
      return false;
    }
    if (result == MemoryResult::fault) {
      ++core_.counters.error_naks_sent;
      send_acknowledge(qp, psn, wire::Aeth::nak(resource.msn, wire::NakCode::remote_access_error),
                       false);
      requester_.fail(qp, CompletionStatus::flushed);
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
      qp.header, wire::HeaderBuffer{packet.header}, fields, ack_of(qp, resource.msn)));
  core_.finish_packet(qp, packet, payload);

  if (!run.repair && index >= resource.sent) {
    core_.count_data(qp.peer);
    core_.counters.tx_data_bytes += payload;
    qp.counters.tx_bytes += payload;
  } else {
    core_.count_retransmitted(qp);
    core_.counters.retransmitted_bytes += payload;
  }
  r.backlog_bytes -= payload;
  core_.contexts[qp.context].backlog_bytes -= payload;
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
  if (last) give_due(qp);
  return true;
}

}  // namespace paceline::transport
