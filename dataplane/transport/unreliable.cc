// Unreliable connection (InfiniBand vol. 1, 9.8.2): nothing is acknowledged or sent again. A
// request is complete when its last packet is on its way. The responder takes a message whole or
// not at all: a gap drops what is left of the message, and the next First or Only packet sets the
// sequence right.
#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/requester.h"
#include "dataplane/transport/responder.h"
#include "dataplane/wire/build.h"

namespace paceline::transport {

// --- requester ---

PostResult RequesterPart::check_unreliable(const QueuePair& qp,
                                           const QueuedRequest& request) const {
  const bool uc = qp.config.type == QpType::uc;
  const WorkOpcode opcode = request.opcode;
  if (is_answered(opcode) || opcode == WorkOpcode::send_invalidate) return PostResult::bad_opcode;
  if (uc) return PostResult::ok;
  if (is_write(opcode)) return PostResult::bad_opcode;
  if (request.length > qp.mtu) return PostResult::bad_length;
  const AddressHandle* handle = core_.handles.find(request.address_handle);
  if (handle == nullptr || handle->pd != qp.config.pd) return PostResult::bad_target;
  return request.target_qp_number <= wire::kMaxQpn ? PostResult::ok : PostResult::bad_target;
}

bool RequesterPart::build_unreliable(QueuePair& qp, Packet& packet) {
  const RequesterState& r = qp.requester;
  const SendEntry& entry = r.queue.at(r.cursor);
  const std::uint32_t index = r.cursor_packet;
  const std::uint32_t payload = payload_of(qp, entry, index);
  const bool first = index == 0;
  const bool last = index + 1 == entry.packets;
  if (!fill_payload(qp, packet, r.cursor, std::uint64_t{index} * qp.mtu, payload)) return false;

  constexpr unsigned kUcOpcodes = 0x20;  // RC and UC differ by this (vol. 1, table 35)
  const QueuedRequest& request = entry.request;
  wire::TransportFields fields;
  fields.opcode = static_cast<wire::Opcode>(
      kUcOpcodes | static_cast<unsigned>(opcode_of(request.opcode, first, last)));
  fields.dest_qpn = qp.remote_number;
  fields.psn = r.next_psn;
  fields.payload_bytes = payload;
  fields.solicited = last && request.solicited && takes_receive(request.opcode);
  const wire::Reth reth{request.remote_address, request.remote_key,
                        static_cast<std::uint32_t>(request.length)};
  packet.header_bytes = static_cast<std::uint16_t>(wire::build_data(
      qp.header, wire::HeaderBuffer{packet.header}, fields, &reth, request.immediate));
  core_.finish_packet(qp, packet, payload);
  core_.contexts[qp.context].backlog_bytes -= payload;
  sent_unacknowledged(qp, qp.peer, payload, last);
  return true;
}

// The packet at next_psn is built; with the last one its request is complete (9.8.2.1).
void RequesterPart::sent_unacknowledged(QueuePair& qp, std::uint32_t peer, std::uint32_t payload,
                                        bool last) {
  RequesterState& r = qp.requester;
  core_.count_data(peer);
  core_.counters.tx_data_bytes += payload;
  qp.counters.tx_bytes += payload;
  r.backlog_bytes -= payload;
  ++r.next_psn;
  r.una_psn = r.max_psn = r.next_psn;
  ++r.cursor_packet;
  if (!last) return;
  const QueuedRequest& request = r.queue.front().request;
  if (request.signaled) {
    ++qp.counters.completions;
    Completion completion;
    completion.wr_id = request.wr_id;
    completion.bytes = request.length;
    completion.at = core_.now;
    completion.qp_number = qp.number;
    completion.opcode = completion_opcode(request.opcode);
    core_.complete(qp.config.send_cq, completion);
  }
  if (request.fence) --r.ordered;
  r.queue.pop();
  ++r.cursor;
  r.cursor_packet = 0;
  if (r.ordered != 0) {
    check_order(qp);
    check_drained(qp);
  }
}

// A request failed for a local reason. Under a reliable service this is the end of the connection,
// under an unreliable one of the send queue only, and SQE until it is led back (10.3.1.6).
void RequesterPart::fail_sends(QueuePair& qp, CompletionStatus status) {
  if (!qp.unreliable) {
    fail(qp, status, qp.requester.next_psn);
    return;
  }
  RequesterState& r = qp.requester;
  for (std::uint32_t p = r.queue.head(); p != r.queue.tail(); ++p) {
    const SendEntry& entry = r.queue.at(p);
    Completion completion;
    completion.wr_id = entry.request.wr_id;
    completion.at = core_.now;
    completion.qp_number = qp.number;
    completion.opcode = completion_opcode(entry.request.opcode);
    completion.status = status;
    core_.complete(qp.config.send_cq, completion);
    status = CompletionStatus::flushed;
  }
  qp.state = QpState::sqe;
  drop_work(qp);
}

// --- responder ---

// The packet and the rest of the message in progress are not taken; the message's receive request
// serves the next. `reason`: a counter of packets.
ResponderPart::Outcome ResponderPart::drop_message(QueuePair& qp, std::uint64_t& reason) {
  qp.responder.in_message = false;
  ++core_.counters.unreliable_drops;
  ++reason;
  return Outcome::done;
}

ResponderPart::Outcome ResponderPart::accept_unreliable(QueuePair& qp,
                                                        const wire::ParsedPacket& parsed,
                                                        const Packet& packet) {
  ResponderState& r = qp.responder;
  const bool starts = parsed.properties.begins_message();
  const bool ends = parsed.properties.ends_message();
  const bool write = parsed.properties.operation == wire::Operation::write;
  telemetry::EngineCounters& counters = core_.counters;
  if (starts) {
    if (r.in_message) ++counters.unreliable_drops;  // its end is lost
    r.in_message = false;
    r.expected = parsed.psn;
  } else if (!r.in_message) {
    return drop_message(qp, counters.dropped_gap);
  } else if (parsed.psn != r.expected || write != r.message_is_write) {
    ++counters.out_of_sequence;
    return drop_message(qp, counters.dropped_gap);
  }
  if (parsed.payload_bytes > qp.mtu || (!ends && parsed.payload_bytes != qp.mtu) ||
      (ends && !starts && parsed.payload_bytes == 0)) {
    return drop_message(qp, counters.dropped_bad_request);
  }
  // No receive request, no right, too long: nobody is told (9.9.3, class D).
  if (starts && begin_message(qp, parsed) != Begin::done) {
    return drop_message(qp, write ? counters.dropped_no_access : counters.dropped_no_receive);
  }
  const bool fits =
      write ? parsed.payload_bytes <= r.remaining && (!ends || parsed.payload_bytes == r.remaining)
            : r.received + parsed.payload_bytes <= r.receive.length;
  if (!fits) return drop_message(qp, counters.dropped_too_long);
  if (write && ends && parsed.properties.has_immediate() && !take_receive(qp)) {
    return drop_message(qp, counters.dropped_no_receive);
  }
  if (parsed.payload_bytes != 0) {
    switch (place(qp, parsed, packet)) {
      case MemoryResult::done:
        break;
      case MemoryResult::pending:
        if (starts) r.in_message = false;
        return Outcome::pending;
      case MemoryResult::fault:
        if (write) return drop_message(qp, counters.dropped_no_access);
        ++counters.dropped_local_error;
        // Our own receive request is wrong: nobody is told, but its owner.
        fail_receive(qp, CompletionStatus::local_protection_error);
        requester_.fail(qp, CompletionStatus::flushed);
        return Outcome::done;
    }
  }
  r.address += parsed.payload_bytes;
  r.received += parsed.payload_bytes;
  if (write) r.remaining -= parsed.payload_bytes;
  r.expected = parsed.psn + 1;
  ++counters.rx_data_packets;
  counters.rx_data_bytes += parsed.payload_bytes;
  if (!ends) return Outcome::done;
  // A WRITE without immediate must not use up the receive request of a SEND that was dropped.
  if (write && !parsed.properties.has_immediate()) {
    r.in_message = false;
    qp.counters.rx_bytes += r.received;
  } else {
    finish_message(qp, parsed);
  }
  return Outcome::done;
}

}  // namespace paceline::transport
