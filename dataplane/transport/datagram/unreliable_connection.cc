#include "dataplane/transport/datagram/unreliable_connection.h"

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/message/message_placer.h"
#include "dataplane/transport/message/packet_builder.h"
#include "dataplane/transport/message/qp_failure.h"
#include "dataplane/transport/message/request_order.h"
#include "dataplane/transport/message/send_window.h"
#include "dataplane/wire/packet/build.h"

namespace paceline::transport {

PostResult UnreliableConnection::check(EngineCore& core, const QueuePair& qp,
                                       const QueuedRequest& request) {
  const bool uc = qp.config.type == QpType::uc;
  const WorkOpcode opcode = request.opcode;
  if (expects_response(opcode) || opcode == WorkOpcode::send_invalidate)
    return PostResult::bad_opcode;
  if (uc) return PostResult::ok;
  if (is_write(opcode)) return PostResult::bad_opcode;
  if (request.length > qp.mtu) return PostResult::bad_length;
  const AddressHandle* handle = core.handles.find(request.address_handle);
  if (handle == nullptr || handle->pd != qp.config.pd) return PostResult::bad_target;
  return request.target_qp_number <= wire::kMaxQpn ? PostResult::ok : PostResult::bad_target;
}

bool UnreliableConnection::build(EngineCore& core, QueuePair& qp, Packet& packet) {
  const RequesterState& r = qp.requester;
  const SendEntry& entry = r.queue.at(r.position.request());
  const std::uint32_t index = r.position.packet();
  const std::uint32_t payload = SendWindow::payload_of(qp, entry, index);
  const bool first = index == 0;
  const bool last = index + 1 == entry.packets;
  if (!PacketBuilder::fill_payload(core, qp, packet, r.position.request(),
                                   std::uint64_t{index} * qp.mtu, payload))
    return false;

  constexpr unsigned kUcOpcodes = 0x20;  // RC and UC differ by this (vol. 1, table 35)
  const QueuedRequest& request = entry.request;
  wire::TransportFields fields;
  fields.opcode = static_cast<wire::Opcode>(
      kUcOpcodes | static_cast<unsigned>(PacketBuilder::opcode_of(request.opcode, first, last)));
  fields.dest_qpn = qp.remote_number;
  fields.psn = r.position.next();
  fields.payload_bytes = payload;
  fields.solicited = last && request.solicited && takes_receive(request.opcode);
  const wire::Reth reth{request.remote_address, request.remote_key,
                        static_cast<std::uint32_t>(request.length)};
  packet.header_bytes = static_cast<std::uint16_t>(wire::build_data(
      qp.header, wire::HeaderBuffer{packet.header}, fields, &reth, request.immediate));
  core.finish_packet(qp, packet, payload);
  core.contexts[qp.context].backlog_bytes -= payload;
  sent_unacknowledged(core, qp, qp.peer, payload, last);
  return true;
}

void UnreliableConnection::sent_unacknowledged(EngineCore& core, QueuePair& qp, std::uint32_t peer,
                                               std::uint32_t payload, bool last) {
  RequesterState& r = qp.requester;
  core.count_data(peer);
  core.counters.tx_data_bytes += payload;
  qp.counters.tx_bytes += payload;
  r.backlog_bytes -= payload;
  r.position.sent(last);
  r.position.acknowledge(r.position.next());
  if (!last) return;
  const QueuedRequest& request = r.queue.front().request;
  if (request.signaled) core.complete_send(qp, request, CompletionStatus::success);
  if (request.fence) --r.ordering_constraints;
  r.queue.pop();
  if (r.ordering_constraints != 0) {
    RequestOrder::check(qp);
    RequestOrder::check_drained(core, qp);
  }
}

// Drops the packet and the rest of the message in progress. The message's receive request serves
// the next message. `reason`: a counter of packets.
RequestOutcome UnreliableConnection::drop_message(EngineCore& core, QueuePair& qp,
                                                  std::uint64_t& reason) {
  qp.responder.message.close();
  ++core.counters.unreliable_drops;
  ++reason;
  return RequestOutcome::done;
}

RequestOutcome UnreliableConnection::accept(EngineCore& core, QueuePair& qp,
                                            const wire::ParsedPacket& parsed,
                                            const Packet& packet) {
  ResponderState& r = qp.responder;
  const bool starts = parsed.properties.begins_message();
  const bool ends = parsed.properties.ends_message();
  const bool write = parsed.properties.operation == wire::Operation::write;
  telemetry::EngineCounters& counters = core.counters;
  if (starts) {
    if (r.message.open()) ++counters.unreliable_drops;  // its end is lost
    r.message.close();
    r.position.start(parsed.psn);
  } else if (!r.message.open()) {
    return drop_message(core, qp, counters.dropped_gap);
  } else if (parsed.psn != r.position.expected() || write != r.message.is_write()) {
    ++counters.out_of_sequence;
    return drop_message(core, qp, counters.dropped_gap);
  }
  if (parsed.payload_bytes > qp.mtu || (!ends && parsed.payload_bytes != qp.mtu) ||
      (ends && !starts && parsed.payload_bytes == 0)) {
    return drop_message(core, qp, counters.dropped_bad_request);
  }
  // No receive request, no right, too long: dropped without notice (9.9.3, class D).
  if (starts && MessagePlacer::begin(core, qp, parsed) != MessagePlacer::Begin::done) {
    return drop_message(core, qp, write ? counters.dropped_no_access : counters.dropped_no_receive);
  }
  const bool fits = write ? parsed.payload_bytes <= r.message.remaining() &&
                                (!ends || parsed.payload_bytes == r.message.remaining())
                          : r.message.received() + parsed.payload_bytes <= r.receive.length;
  if (!fits) return drop_message(core, qp, counters.dropped_too_long);
  if (write && ends && parsed.properties.has_immediate() && !MessagePlacer::take_receive(qp)) {
    return drop_message(core, qp, counters.dropped_no_receive);
  }
  switch (MessagePlacer::place(core, qp, parsed, packet)) {
    case MemoryResult::done:
      break;
    case MemoryResult::pending:
      return RequestOutcome::pending;
    case MemoryResult::fault:
      if (write) return drop_message(core, qp, counters.dropped_no_access);
      ++counters.dropped_local_error;
      // Our own receive request is invalid: only its owner is told.
      QpFailure::fail_receive(core, qp, CompletionStatus::local_protection_error);
      QpFailure::fail(core, qp, CompletionStatus::flushed);
      return RequestOutcome::done;
  }
  MessagePlacer::placed(core, qp, parsed.payload_bytes);
  r.position.accept();
  if (!ends) return RequestOutcome::done;
  // A WRITE without immediate must not use up the receive request of a SEND that was dropped.
  if (write && !parsed.properties.has_immediate()) {
    r.message.close();
    qp.counters.rx_bytes += r.message.received();
  } else {
    MessagePlacer::finish(core, qp, parsed);
  }
  return RequestOutcome::done;
}

}  // namespace paceline::transport
