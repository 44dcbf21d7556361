#include "dataplane/transport/responder.h"

#include <cstring>

#include "dataplane/transport/requester.h"
#include "dataplane/wire/build.h"

namespace paceline::transport {

namespace {

constexpr std::uint32_t kMsnMask = 0xFF'FFFF;

bool is_write(const wire::ParsedPacket& parsed) {
  return parsed.properties.operation == wire::Operation::write;
}

}  // namespace

void ResponderPart::on_request(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet) {
  if (qp.state != QpState::rtr && qp.state != QpState::rts) {
    ++core_.counters.wrong_state;
    core_.pool.free(packet);
    return;
  }
  if (parsed.ecn == Ecn::ce) {
    ++core_.counters.rx_ce_packets;
    if (!core_.config.cnp_in_ack) notify_congestion(qp);
  }
  if (qp.responder.waiting_memory) {
    park(qp, packet);
    return;
  }
  if (accept(qp, parsed, *packet) == Outcome::pending) {
    qp.responder.waiting_memory = true;
    ++core_.counters.memory_waits;
    park(qp, packet);
    return;
  }
  core_.pool.free(packet);
}

void ResponderPart::park(QueuePair& qp, Packet* packet) {
  packet->next = nullptr;
  if (qp.responder.parked_tail == nullptr) {
    qp.responder.parked_head = packet;
  } else {
    qp.responder.parked_tail->next = packet;
  }
  qp.responder.parked_tail = packet;
}

void ResponderPart::memory_ready(QueuePair& qp) {
  ResponderState& r = qp.responder;
  if (!r.waiting_memory) return;
  r.waiting_memory = false;
  while (Packet* packet = r.parked_head) {
    wire::ParsedPacket parsed;
    const wire::ParseError error =
        wire::parse_brief(packet->header_view(), packet->payload_bytes, {}, parsed);
    // A packet before this one may have put the queue pair into error.
    if (error == wire::ParseError::ok && qp.state != QpState::error &&
        accept(qp, parsed, *packet) == Outcome::pending) {
      r.waiting_memory = true;
      return;  // still the first of the parked
    }
    r.parked_head = packet->next;
    if (r.parked_head == nullptr) r.parked_tail = nullptr;
    core_.pool.free(packet);
  }
}

void ResponderPart::discard(QueuePair& qp) {
  ResponderState& r = qp.responder;
  while (Packet* packet = r.parked_head) {
    r.parked_head = packet->next;
    core_.pool.free(packet);
  }
  r.parked_tail = nullptr;
  r.waiting_memory = false;
}

ResponderPart::Outcome ResponderPart::accept(QueuePair& qp, const wire::ParsedPacket& parsed,
                                             const Packet& packet) {
  ResponderState& r = qp.responder;
  const std::int32_t ahead = distance(parsed.psn, r.expected);
  const bool becn = core_.config.cnp_in_ack && parsed.ecn == Ecn::ce;
  if (ahead < 0) {
    // Seen before: its answer was lost, or it was sent twice. Answer again, do nothing again.
    ++core_.counters.duplicates;
    if (parsed.ack_request) acknowledge(qp, r.expected - 1, wire::Aeth::ack(r.msn), becn);
    return Outcome::done;
  }
  if (ahead > 0) {
    ++core_.counters.out_of_sequence;
    if (!r.nak_sent) {
      r.nak_sent = true;
      ++core_.counters.naks_sent;
      acknowledge(qp, r.expected, wire::Aeth::nak(r.msn, wire::NakCode::psn_sequence_error), becn);
    }
    return Outcome::done;
  }

  const bool starts = parsed.properties.begins_message();
  const bool ends = parsed.properties.ends_message();
  // Opcode sequence (vol. 1, 9.7.4.1.5): first or only between messages, middle or last of the same
  // kind within one.
  if (starts == r.in_message || (!starts && r.message_is_write != is_write(parsed))) {
    refuse(qp, wire::NakCode::invalid_request);
    return Outcome::done;
  }
  // Full packets until the last (9.7.4.1.6).
  const std::uint32_t mtu = core_.config.payload_mtu;
  if ((!ends && parsed.payload_bytes != mtu) || parsed.payload_bytes > mtu ||
      (ends && !starts && parsed.payload_bytes == 0)) {
    refuse(qp, wire::NakCode::invalid_request);
    return Outcome::done;
  }
  if (starts && !begin_message(qp, parsed)) return Outcome::done;
  if (r.message_is_write && parsed.payload_bytes > r.remaining) {
    refuse(qp, wire::NakCode::invalid_request);
    return Outcome::done;
  }
  if (r.message_is_write && ends && parsed.payload_bytes != r.remaining) {
    refuse(qp, wire::NakCode::invalid_request);
    return Outcome::done;
  }
  // A WRITE with immediate takes a receive request, too, at its end.
  const bool needs_receive = r.message_is_write && ends && parsed.properties.has_immediate();
  if (needs_receive && !r.receive_taken) {
    if (qp.config.receive_queue == nullptr || !qp.config.receive_queue->take(r.receive)) {
      put_off(qp);
      if (starts) r.in_message = false;  // the packet comes again as a whole
      return Outcome::done;
    }
    r.receive_taken = true;
  }
  if (!r.message_is_write && r.received + parsed.payload_bytes > r.receive.length) {
    // Longer than the posted receive: local error here, invalid request there (9.7.4.1.7).
    fail_receive(qp, CompletionStatus::local_length_error);
    refuse(qp, wire::NakCode::invalid_request);
    return Outcome::done;
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
        refuse(qp, r.message_is_write ? wire::NakCode::remote_access_error
                                      : wire::NakCode::remote_operational_error);
        return Outcome::done;
    }
  }
  r.address += parsed.payload_bytes;
  r.received += parsed.payload_bytes;
  if (r.message_is_write) r.remaining -= parsed.payload_bytes;
  ++r.expected;
  r.nak_sent = false;
  ++core_.counters.rx_data_packets;
  core_.counters.rx_data_bytes += parsed.payload_bytes;
  if (ends) finish_message(qp, parsed);
  if (parsed.ack_request || becn) acknowledge(qp, parsed.psn, wire::Aeth::ack(r.msn), becn);
  return Outcome::done;
}

// False when the packet was refused (or put off); nothing has changed then.
bool ResponderPart::begin_message(QueuePair& qp, const wire::ParsedPacket& parsed) {
  ResponderState& r = qp.responder;
  if (is_write(parsed)) {
    const wire::Reth& reth = parsed.ext.reth;
    if (reth.length != 0) {
      const Region* region = core_.regions.find(reth.rkey);
      if (region == nullptr || (region->access & access::remote_write) == 0 ||
          !region->covers(reth.address, reth.length)) {
        refuse(qp, wire::NakCode::remote_access_error);
        return false;
      }
    }
    r.rkey = reth.rkey;
    r.address = reth.address;
    r.remaining = reth.length;
    r.message_is_write = true;
  } else {
    if (!r.receive_taken) {
      if (qp.config.receive_queue == nullptr || !qp.config.receive_queue->take(r.receive)) {
        put_off(qp);
        return false;
      }
      r.receive_taken = true;
    }
    r.rkey = r.receive.local_key;
    r.address = r.receive.address;
    r.remaining = 0;
    r.message_is_write = false;
  }
  r.received = 0;
  r.in_message = true;
  return true;
}

MemoryResult ResponderPart::place(QueuePair& qp, const wire::ParsedPacket& parsed,
                                  const Packet& packet) {
  const ResponderState& r = qp.responder;
  const Region* region = core_.regions.find(r.rkey);
  const std::uint32_t bytes = parsed.payload_bytes;
  if (region == nullptr || !region->covers(r.address, bytes)) return MemoryResult::fault;
  const std::uint8_t needed = r.message_is_write ? access::remote_write : access::local_write;
  if ((region->access & needed) == 0) return MemoryResult::fault;
  if (packet.payload_kind == PayloadKind::elided) {
    const std::uint64_t place = r.message_is_write ? r.address : r.received;
    if (packet.digest != elided_digest(place, bytes)) ++core_.counters.digest_mismatches;
    return region->kind == RegionKind::elided ? MemoryResult::done : MemoryResult::fault;
  }
  if (packet.payload_kind != PayloadKind::owned) return MemoryResult::fault;
  switch (region->kind) {
    case RegionKind::plain:
      std::memcpy(region->memory + (r.address - region->base), packet.payload, bytes);
      return MemoryResult::done;
    case RegionKind::provided:
      return region->provider->write(qp.number, r.address - region->base, {packet.payload, bytes});
    case RegionKind::elided:
      return MemoryResult::done;
    case RegionKind::none:
      break;
  }
  return MemoryResult::fault;
}

void ResponderPart::finish_message(QueuePair& qp, const wire::ParsedPacket& parsed) {
  ResponderState& r = qp.responder;
  r.in_message = false;
  r.msn = (r.msn + 1) & kMsnMask;
  if (!r.receive_taken) return;  // a WRITE without immediate leaves no trace here
  r.receive_taken = false;
  Completion completion;
  completion.wr_id = r.receive.wr_id;
  completion.bytes = r.received;
  completion.at = core_.now;
  completion.qp_number = qp.number;
  completion.opcode =
      r.message_is_write ? CompletionOpcode::receive_write_imm : CompletionOpcode::receive;
  completion.has_immediate = parsed.properties.has_immediate();
  completion.immediate = parsed.ext.immediate;
  core_.complete(qp.config.receive_cq, completion);
}

void ResponderPart::acknowledge(QueuePair& qp, Psn psn, wire::Aeth aeth, bool becn) {
  Packet* packet = core_.alloc_headers_only();
  if (packet == nullptr) return;  // as if lost: the requester asks again
  const wire::HeaderTemplate& header = core_.peers[qp.peer].control;
  packet->header_bytes = static_cast<std::uint16_t>(wire::build_acknowledge(
      header, wire::HeaderBuffer{packet->header}, qp.remote_number, psn, aeth, becn));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  if (aeth.is_ack()) ++core_.counters.acks_sent;
  core_.queue_control(packet);
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

// A request that can never succeed: answer once, then the queue pair is in error (9.9.2).
void ResponderPart::refuse(QueuePair& qp, wire::NakCode code) {
  ++core_.counters.error_naks_sent;
  acknowledge(qp, qp.responder.expected, wire::Aeth::nak(qp.responder.msn, code), false);
  qp.responder.in_message = false;
  requester_.fail(qp, CompletionStatus::flushed);
}

void ResponderPart::notify_congestion(QueuePair& qp) {
  ResponderState& r = qp.responder;
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
  core_.queue_control(packet);
}

}  // namespace paceline::transport
