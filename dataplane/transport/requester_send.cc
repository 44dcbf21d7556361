#include "dataplane/transport/requester.h"

#include <algorithm>

#include "dataplane/transport/memory_access.h"
#include "dataplane/transport/scheduler.h"

namespace paceline::transport {

using wire::Opcode;

namespace {

// The last packet carries 4 bytes more: immediate data, or the key to revoke.
constexpr bool has_last_word(WorkOpcode opcode) {
  return has_immediate(opcode) || opcode == WorkOpcode::send_invalidate;
}

}  // namespace

// The opcode of packet `first`/`last` of a message, as the reliable service has it.
Opcode RequesterPart::opcode_of(WorkOpcode work, bool first, bool last) {
  if (is_write(work)) {
    if (first && last) {
      return has_immediate(work) ? Opcode::rc_write_only_imm : Opcode::rc_write_only;
    }
    if (first) return Opcode::rc_write_first;
    if (!last) return Opcode::rc_write_middle;
    return has_immediate(work) ? Opcode::rc_write_last_imm : Opcode::rc_write_last;
  }
  if (first && last) {
    if (work == WorkOpcode::send_invalidate) return Opcode::rc_send_only_invalidate;
    return has_immediate(work) ? Opcode::rc_send_only_imm : Opcode::rc_send_only;
  }
  if (first) return Opcode::rc_send_first;
  if (!last) return Opcode::rc_send_middle;
  if (work == WorkOpcode::send_invalidate) return Opcode::rc_send_last_invalidate;
  return has_immediate(work) ? Opcode::rc_send_last_imm : Opcode::rc_send_last;
}

std::uint32_t RequesterPart::payload_of(const QueuePair& qp, const SendEntry& entry,
                                        std::uint32_t packet) const {
  const std::uint64_t mtu = qp.mtu;
  const std::uint64_t offset = packet * mtu;
  return static_cast<std::uint32_t>(std::min(mtu, entry.request.length - offset));
}

std::uint32_t RequesterPart::wire_of(const QueuePair& qp, const SendEntry& entry,
                                     std::uint32_t packet) const {
  if (entry.answered) return request_wire_of(qp, entry);
  const std::uint32_t payload = payload_of(qp, entry, packet);
  const bool last = packet + 1 == entry.packets;
  std::uint32_t frame = qp.header.header_bytes + ((payload + 3U) & ~3U) + 8U;
  if (packet == 0 && is_write(entry.request.opcode)) frame += wire::Reth::kBytes;
  if (last && has_last_word(entry.request.opcode)) frame += wire::kImmediateBytes;
  return core_.info.wire.wire_bytes(frame, payload);
}

RequesterPart::Span RequesterPart::span_of(const QueuePair& qp, const SendEntry& entry,
                                           std::uint32_t from, std::uint32_t to) const {
  if (from >= to) return {};
  Span span;
  if (entry.answered) {
    // One packet stands for all sequence numbers: it is in flight until the last is answered.
    if (to == entry.packets) span.wire = request_wire_of(qp, entry);
    return span;
  }
  const std::uint64_t mtu = qp.mtu;
  span.payload =
      std::min(to * mtu, entry.request.length) - std::min(from * mtu, entry.request.length);
  span.wire = wire_of(qp, entry, from);
  if (to - from > 1) span.wire += wire_of(qp, entry, to - 1);
  if (to - from > 2) span.wire += std::uint64_t{to - from - 2} * wire_of(qp, entry, from + 1);
  return span;
}

// Bytes of the packets [from, to), which begin in the request at `position`.
RequesterPart::Span RequesterPart::span_between(const QueuePair& qp, std::uint32_t position,
                                                Psn from, Psn to) const {
  Span total;
  while (from != to && position != qp.requester.queue.tail()) {
    const SendEntry& entry = qp.requester.queue.at(position);
    const auto begin = static_cast<std::uint32_t>(distance(from, entry.first_psn));
    const auto wanted = static_cast<std::uint32_t>(distance(to, entry.first_psn));
    const std::uint32_t end = std::min(wanted, entry.packets);
    const Span span = span_of(qp, entry, begin, end);
    total.payload += span.payload;
    total.wire += span.wire;
    from = entry.first_psn + end;
    ++position;
  }
  return total;
}

PostResult RequesterPart::post(QueuePair& qp, const WorkRequest& request) {
  RequesterState& r = qp.requester;
  if (qp.state == QpState::error || qp.state == QpState::sqe) {
    Completion completion;
    completion.wr_id = request.wr_id;
    completion.at = core_.now;
    completion.qp_number = qp.number;
    completion.status = CompletionStatus::flushed;
    completion.opcode = completion_opcode(request.opcode);
    core_.complete(qp.config.send_cq, completion);
    return PostResult::ok;
  }
  if (!can_send(qp.state)) return PostResult::bad_state;
  const bool answered = is_answered(request.opcode);
  if (answered && qp.config.max_rd_atomic == 0) return PostResult::bad_opcode;
  if (qp.unreliable) {
    if (const PostResult result = check_unreliable(qp, request); result != PostResult::ok) {
      return result;
    }
  }
  if (is_atomic(request.opcode) ? request.length != kAtomicBytes
                                : request.length > kMaxMessageBytes) {
    return PostResult::bad_length;
  }
  const std::uint64_t mtu = qp.mtu;
  const auto packets =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (request.length + mtu - 1) / mtu));
  // All PSNs in flight must stay comparable (vol. 1, 9.7.2).
  constexpr std::int32_t kWindow = 1 << 23;
  if (packets >= kWindow) return PostResult::bad_length;
  if (r.queue.full()) return PostResult::queue_full;
  if (request.length != 0) {
    const Region* region = core_.regions.find(request.local_key);
    const std::uint8_t needed = answered ? access::local_write : std::uint8_t{0};
    if (region == nullptr ||
        !region->grants(qp.config.pd, needed, request.local_address, request.length)) {
      return PostResult::bad_key;
    }
  }
  if (distance(r.tail_psn, r.una_psn) + static_cast<std::int32_t>(packets) >= kWindow) {
    return PostResult::queue_full;
  }
  r.ssn = next_msn(r.ssn);
  r.queue.push({request, r.tail_psn, packets, r.ssn, answered});
  r.tail_psn = r.tail_psn + packets;
  if (answered || request.fence) ++r.ordered;
  if (r.ordered != 0) check_order(qp);
  if (answered) return PostResult::ok;  // what it moves, the peer sends
  if (qp.config.type == QpType::ud) ++core_.handles[request.address_handle >> 8].uses;
  r.backlog_bytes += request.length;
  core_.contexts[context_of(qp, request)].backlog_bytes += request.length;
  return PostResult::ok;
}

std::uint32_t RequesterPart::next_wire_bytes(const QueuePair& qp) const {
  const RequesterState& r = qp.requester;
  return wire_of(qp, r.queue.at(r.cursor), r.cursor_packet);
}

// False when the source answers later, or not at all (the queue pair has failed then).
bool RequesterPart::fill_payload(QueuePair& qp, Packet& packet, const SendEntry& entry,
                                 std::uint64_t offset, std::uint32_t bytes) {
  packet.payload_bytes = 0;
  packet.payload_kind = PayloadKind::none;
  if (bytes == 0) return true;
  const WorkRequest& request = entry.request;
  const std::uint64_t address = request.local_address + offset;
  const Region* region = core_.regions.find(request.local_key);
  MemoryResult result = MemoryResult::fault;  // deregistered under way
  if (region != nullptr && region->grants(qp.config.pd, 0, address, bytes)) {
    const std::uint64_t place = is_write(request.opcode) ? request.remote_address + offset : offset;
    result = load_payload(*region, qp.number, address, bytes, place, packet);
  }
  if (result == MemoryResult::done) return true;
  if (result == MemoryResult::pending) {
    qp.requester.stops |= requester_stop::memory;
    ++core_.counters.memory_waits;
  } else {
    fail_sends(qp, CompletionStatus::local_protection_error);
  }
  return false;
}

// Whether a packet that does not end its message asks for an ACK: every ack_every-th, and whenever
// waiting for that one could last until the timer: when this packet fills the window, or when
// pacing is so slow that a good part of the timeout has gone by since the last request.
bool RequesterPart::wants_ack(QueuePair& qp) const {
  RequesterState& r = qp.requester;
  if (++r.since_ack_request >= core_.config.ack_every) return true;
  const CongestionContext& context = core_.contexts[qp.context];
  const std::uint64_t filled = context.inflight_bytes + next_wire_bytes(qp);
  if (filled >= context.decision.window_bytes) return true;
  return core_.now - r.ack_requested_at >= qp.config.retransmit_timeout / 4;
}

bool RequesterPart::build_next(QueuePair& qp, Packet& packet) {
  RequesterState& r = qp.requester;
  const SendEntry& entry = r.queue.at(r.cursor);
  if (entry.answered) {
    build_request(qp, packet, entry);
    return true;
  }
  if (qp.unreliable) {
    return qp.config.type == QpType::uc ? build_unreliable(qp, packet) : build_datagram(qp, packet);
  }
  const std::uint32_t index = r.cursor_packet;
  const std::uint64_t offset = std::uint64_t{index} * qp.mtu;
  const std::uint32_t payload = payload_of(qp, entry, index);
  const bool first = index == 0;
  const bool last = index + 1 == entry.packets;
  if (!fill_payload(qp, packet, entry, offset, payload)) return false;

  const WorkRequest& request = entry.request;
  wire::TransportFields fields;
  fields.opcode = opcode_of(request.opcode, first, last);
  fields.dest_qpn = qp.remote_number;
  fields.psn = r.next_psn;
  fields.payload_bytes = payload;
  fields.ack_request = last || wants_ack(qp) || beyond_credits(r, entry) > 0;
  fields.solicited = last && request.solicited;
  wire::Reth reth;
  if (first && is_write(request.opcode)) {
    reth.address = request.remote_address;
    reth.rkey = request.remote_key;
    reth.length = static_cast<std::uint32_t>(request.length);
  }
  const std::uint32_t word =
      request.opcode == WorkOpcode::send_invalidate ? request.remote_key : request.immediate;
  packet.header_bytes = static_cast<std::uint16_t>(
      wire::build_data(qp.header, wire::HeaderBuffer{packet.header}, fields, &reth, word));
  core_.finish_packet(qp, packet, payload);

  if (fields.ack_request) {
    r.since_ack_request = 0;
    r.ack_requested_at = core_.now;
    if (!r.probe_active && r.next_psn == r.max_psn) {  // never time a retransmission (Karn)
      r.probe_active = true;
      r.probe_psn = r.next_psn;
      r.probe_sent = core_.now;
    }
  }
  if (r.next_psn == r.max_psn) {
    ++r.max_psn;
    ++core_.counters.tx_data_packets;
    core_.counters.tx_data_bytes += payload;
  } else {
    ++core_.counters.retransmitted_packets;
    core_.counters.retransmitted_bytes += payload;
  }
  ++r.next_psn;
  if (last) {
    ++r.cursor;
    r.cursor_packet = 0;
  } else {
    ++r.cursor_packet;
  }
  if (r.ordered != 0) check_order(qp);
  if (r.inflight_bytes == 0) arm_timer(qp);
  r.inflight_bytes += packet.wire_bytes;
  r.backlog_bytes -= payload;
  core_.contexts[qp.context].backlog_bytes -= payload;
  return true;
}

}  // namespace paceline::transport
