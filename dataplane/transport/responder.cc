#include "dataplane/transport/responder.h"

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/requester.h"

namespace paceline::transport {

namespace {

bool is_write(const wire::ParsedPacket& parsed) {
  return parsed.properties.operation == wire::Operation::write;
}

// SEND and WRITE; READs and atomics are requests without payload.
bool carries_message(const wire::ParsedPacket& parsed) {
  return parsed.properties.carries_payload();
}

}  // namespace

void ResponderPart::on_request(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet) {
  if (!can_receive(qp.state)) {
    ++core_.counters.wrong_state;
    core_.pool.free(packet);
    return;
  }
  if (!qp.established) {
    qp.established = true;
    if (qp.state == QpState::rtr) {
      core_.events.push({AsyncEventKind::comm_established, qp.number});
    }
  }
  if (parsed.ecn == Ecn::ce) {
    qp.config.type == QpType::ud ? on_marked_datagram(qp, parsed, *packet) : on_marked(qp);
  }
  if (qp.responder.halts != 0) {
    if ((qp.responder.halts & responder_halt::condemned) != 0) {
      ++core_.counters.wrong_state;
      core_.pool.free(packet);
    } else {
      park(qp, packet);
    }
    return;
  }
  if (qp.responder.selective) [[unlikely]] {
    take_selective(qp, parsed, packet);
    return;
  }
  if (take(qp, parsed, *packet) == Outcome::pending) {
    wait_for_memory(qp, packet);
    return;
  }
  core_.pool.free(packet);
}

// The packet is the next one to be taken, as soon as memory has answered.
void ResponderPart::wait_for_memory(QueuePair& qp, Packet* packet) {
  qp.responder.halts |= responder_halt::memory;
  ++core_.counters.memory_waits;
  qp.responder.parked.push_front(packet);
}

// The region that a WRITE goes to; nullptr when its peer may not.
const Region* ResponderPart::writable(const QueuePair& qp, const wire::Reth& reth) const {
  const Region* region = core_.regions.find(reth.rkey);
  const bool granted =
      region != nullptr && (qp.config.access & access::remote_write) != 0 &&
      region->grants_peer(qp.number, qp.config.pd, access::remote_write, reth.address, reth.length);
  return granted ? region : nullptr;
}

void ResponderPart::memory_ready(QueuePair& qp) {
  ResponderState& r = qp.responder;
  if (r.response_waits) {
    r.response_waits = false;
    give_due(qp);
    core_.actions.settle(qp);
  }
  if ((r.halts & responder_halt::memory) == 0) return;
  r.halts &= static_cast<std::uint8_t>(~responder_halt::memory);
  while (!r.parked.empty()) {
    Packet* packet = r.parked.head;
    wire::ParsedPacket parsed;
    const wire::ParseError error =
        wire::parse_brief(packet->header_view(), packet->payload_bytes, {}, parsed);
    // A packet before this one may have put the queue pair into error, or on its way there.
    const bool takes = error == wire::ParseError::ok && qp.state != QpState::error && r.halts == 0;
    if (takes && qp.responder.selective) {
      r.parked.pop();
      if (!take_selective(qp, parsed, packet)) return;
      continue;
    }
    if (!takes) ++core_.counters.wrong_state;
    if (takes && take(qp, parsed, *packet) == Outcome::pending) {
      r.halts |= responder_halt::memory;
      return;  // still the first of the parked
    }
    core_.pool.free(r.parked.pop());
  }
}

void ResponderPart::discard(QueuePair& qp) {
  ResponderState& r = qp.responder;
  for (; !r.parked.empty(); core_.pool.free(r.parked.pop())) ++core_.counters.wrong_state;
  r.halts = 0;
  if (!qp.responder.selective) return;
  for (Packet*& held : qp.selective->receive.held) {
    if (held == nullptr) continue;
    ++core_.counters.wrong_state;
    core_.pool.free(held);
    held = nullptr;
  }
  qp.selective->receive.held_packets = 0;
}

ResponderPart::Outcome ResponderPart::take(QueuePair& qp, const wire::ParsedPacket& parsed,
                                           const Packet& packet) {
  if (!qp.unreliable) return accept(qp, parsed, packet);
  return qp.config.type == QpType::uc ? accept_unreliable(qp, parsed, packet)
                                      : accept_datagram(qp, parsed, packet);
}

ResponderPart::Outcome ResponderPart::accept(QueuePair& qp, const wire::ParsedPacket& parsed,
                                             const Packet& packet) {
  ResponderState& r = qp.responder;
  const std::int32_t ahead = distance(parsed.psn, r.expected);
  const bool becn = core_.config.cnp_in_ack && parsed.ecn == Ecn::ce;
  if (ahead < 0) {
    // Seen before: its answer was lost, or it was sent twice. Answer again, do nothing again.
    ++core_.counters.duplicates;
    ++core_.counters.dropped_stale;
    if (qp.responder.selective) {
      // A READ is repeated on purpose, for answers that were lost.
      qp.selective->receive.answer_due = true;
      if (carries_message(parsed)) qp.selective->receive.duplicate = true;
    }
    if (!carries_message(parsed)) {
      repeat_answer(qp, parsed);
      return Outcome::done;
    }
    if (parsed.ack_request) {
      const Psn newest = answered_itself(qp) ? parsed.psn : r.expected - 1;
      acknowledge(qp, newest, ack_of(qp, r.msn), becn);
    }
    return Outcome::done;
  }
  if (ahead > 0) {
    if (qp.responder.selective) return accept_early(qp, parsed, packet);
    ++core_.counters.out_of_sequence;
    ++core_.counters.dropped_gap;
    if (!r.nak_sent) {
      r.nak_sent = true;
      ++core_.counters.naks_sent;
      acknowledge(qp, r.expected, wire::Aeth::nak(r.msn, wire::NakCode::psn_sequence_error), becn);
    }
    return Outcome::done;
  }

  if (!carries_message(parsed)) {
    const std::uint64_t taken = core_.counters.rx_data_packets;
    const Outcome outcome = accept_answered(qp, parsed);
    if (outcome == Outcome::done && core_.counters.rx_data_packets == taken) {
      ++core_.counters.dropped_refused;
    }
    return outcome;
  }
  const bool starts = parsed.properties.begins_message();
  const bool ends = parsed.properties.ends_message();
  // Opcode sequence (vol. 1, 9.7.4.1.5): first or only between messages, middle or last of the same
  // kind within one.
  if (starts == r.in_message || (!starts && r.message_is_write != is_write(parsed))) {
    return refuse_packet(qp, wire::NakCode::invalid_request);
  }
  // Full packets until the last (9.7.4.1.6).
  const std::uint32_t mtu = qp.mtu;
  if ((!ends && parsed.payload_bytes != mtu) || parsed.payload_bytes > mtu ||
      (ends && !starts && parsed.payload_bytes == 0)) {
    return refuse_packet(qp, wire::NakCode::invalid_request);
  }
  if (starts) {
    switch (begin_message(qp, parsed)) {
      case Begin::done:
        break;
      case Begin::not_ready:
        put_off(qp);
        return Outcome::done;
      case Begin::no_access:
        return refuse_packet(qp, wire::NakCode::remote_access_error);
    }
  }
  if (r.message_is_write && parsed.payload_bytes > r.remaining) {
    return refuse_packet(qp, wire::NakCode::invalid_request);
  }
  if (r.message_is_write && ends && parsed.payload_bytes != r.remaining) {
    return refuse_packet(qp, wire::NakCode::invalid_request);
  }
  // A WRITE with immediate takes a receive request, too, at its end.
  const bool needs_receive = r.message_is_write && ends && parsed.properties.has_immediate();
  if (needs_receive && !take_receive(qp)) {
    put_off(qp);
    if (starts) r.in_message = false;  // the packet comes again as a whole
    return Outcome::done;
  }
  if (!r.message_is_write && r.received + parsed.payload_bytes > r.receive.length) {
    // Longer than the posted receive: local error here, invalid request there (9.7.4.1.7).
    fail_receive(qp, CompletionStatus::local_length_error);
    return refuse_packet(qp, wire::NakCode::invalid_request);
  }
  if (parsed.payload_bytes != 0) {
    switch (place(qp, parsed, packet)) {
      case MemoryResult::done:
        break;
      case MemoryResult::pending:
        // accept() runs again for the same packet: take back what marks it as begun.
        if (starts) r.in_message = false;
        return Outcome::pending;
      case MemoryResult::fault:
        if (!r.message_is_write) fail_receive(qp, CompletionStatus::local_protection_error);
        return refuse_packet(qp, r.message_is_write ? wire::NakCode::remote_access_error
                                                    : wire::NakCode::remote_operational_error);
    }
  }
  if (parsed.properties.has_ieth() &&
      !core_.regions.invalidate(parsed.ext.invalidate_rkey, qp.config.pd, access::remote_invalidate,
                                qp.number)) {
    fail_receive(qp, CompletionStatus::remote_invalid_request);
    return refuse_packet(qp, wire::NakCode::remote_access_error);
  }
  r.address += parsed.payload_bytes;
  r.received += parsed.payload_bytes;
  if (r.message_is_write) r.remaining -= parsed.payload_bytes;
  ++r.expected;
  r.nak_sent = false;
  ++core_.counters.rx_data_packets;
  core_.counters.rx_data_bytes += parsed.payload_bytes;
  if (ends) finish_message(qp, parsed);
  if (parsed.ack_request || becn) acknowledge(qp, parsed.psn, ack_of(qp, r.msn), becn);
  return Outcome::done;
}

// Unless done, nothing has changed.
ResponderPart::Begin ResponderPart::begin_message(QueuePair& qp, const wire::ParsedPacket& parsed) {
  ResponderState& r = qp.responder;
  if (is_write(parsed)) {
    const wire::Reth& reth = parsed.ext.reth;
    if (reth.length != 0 && writable(qp, reth) == nullptr) return Begin::no_access;
    r.rkey = reth.rkey;
    r.address = reth.address;
    r.remaining = reth.length;
    r.message_is_write = true;
  } else {
    if (!take_receive(qp)) return Begin::not_ready;
    r.rkey = r.receive.local_key;
    r.address = r.receive.address;
    r.remaining = 0;
    r.message_is_write = false;
  }
  r.received = 0;
  r.in_message = true;
  return Begin::done;
}

// The receive request for the message in progress; one that a message dropped on the way had taken
// serves the next.
bool ResponderPart::take_receive(QueuePair& qp) {
  ResponderState& r = qp.responder;
  if (r.receive_taken) return true;
  ReceiveQueue* const receives = qp.config.receive_queue;
  r.receive_taken = receives != nullptr && receives->take(r.receive, r.receive_segments.data());
  return r.receive_taken;
}

// The segments of the receive request in use.
SegmentAccess ResponderPart::received_into(const QueuePair& qp, std::uint64_t offset,
                                           std::uint32_t bytes) const {
  const ReceiveRequest& receive = qp.responder.receive;
  return {core_.regions, {receive.segments, receive.segment_count},
          qp.config.pd,  qp.number,
          true,          access::local_write,
          offset,        bytes};
}

MemoryResult ResponderPart::place(QueuePair& qp, const wire::ParsedPacket& parsed,
                                  const Packet& packet) {
  const ResponderState& r = qp.responder;
  const std::uint32_t bytes = parsed.payload_bytes;
  if (!r.message_is_write && r.receive.segment_count != 0) {
    bool mismatch = false;
    const MemoryResult result =
        scatter_payload(received_into(qp, r.received, bytes), r.received, packet, mismatch);
    if (mismatch) ++core_.counters.digest_mismatches;
    return result;
  }
  const Region* region = core_.regions.find(r.rkey);
  const std::uint8_t needed = r.message_is_write ? access::remote_write : access::local_write;
  if (region == nullptr ||
      !region->grants_peer(qp.number, qp.config.pd, needed, r.address, bytes)) {
    return MemoryResult::fault;
  }
  bool mismatch = false;
  const MemoryResult result =
      store_payload(*region, {qp.number, true}, r.address, bytes,
                    r.message_is_write ? r.address : r.received, packet, mismatch);
  if (mismatch) ++core_.counters.digest_mismatches;
  return result;
}

void ResponderPart::finish_message(QueuePair& qp, const wire::ParsedPacket& parsed) {
  ResponderState& r = qp.responder;
  r.in_message = false;
  qp.counters.rx_bytes += r.received;
  std::uint64_t earlier_bytes = 0;
  if (qp.responder.selective) [[unlikely]] {
    SelectiveReceive& s = qp.selective->receive;
    if (parsed.opcode == wire::Opcode::rc_write_only && parsed.solicited) {
      s.continued_bytes += r.received;  // the message goes on in the next packet
      return;
    }
    earlier_bytes = s.continued_bytes;
    s.continued_bytes = 0;
  }
  r.msn = next_msn(r.msn);
  if (!r.receive_taken) return;  // a WRITE without immediate leaves no trace here
  r.receive_taken = false;
  ++qp.counters.completions;
  Completion completion;
  completion.wr_id = r.receive.wr_id;
  completion.bytes = r.received + earlier_bytes;
  completion.at = core_.now;
  completion.qp_number = qp.number;
  completion.opcode =
      r.message_is_write ? CompletionOpcode::receive_write_imm : CompletionOpcode::receive;
  completion.has_immediate = parsed.properties.has_immediate();
  completion.solicited = parsed.solicited;
  completion.immediate = parsed.ext.immediate;
  completion.invalidated = parsed.properties.has_ieth();
  completion.invalidated_key = completion.invalidated ? parsed.ext.invalidate_rkey : 0;
  core_.complete(qp.config.receive_cq, completion);
}

}  // namespace paceline::transport
