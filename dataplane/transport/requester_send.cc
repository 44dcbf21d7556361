#include "dataplane/transport/requester.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "dataplane/transport/scheduler.h"
#include "dataplane/wire/icrc.h"

namespace paceline::transport {

namespace {

using wire::Opcode;

constexpr bool is_write(WorkOpcode opcode) {
  return opcode == WorkOpcode::write || opcode == WorkOpcode::write_imm;
}
constexpr bool has_immediate(WorkOpcode opcode) {
  return opcode == WorkOpcode::send_imm || opcode == WorkOpcode::write_imm;
}

// The opcode of packet `first`/`last` of a message; RC and UC differ by 0x20 (vol. 1, table 35).
Opcode opcode_of(WorkOpcode work, bool first, bool last) {
  if (is_write(work)) {
    if (first && last) {
      return has_immediate(work) ? Opcode::rc_write_only_imm : Opcode::rc_write_only;
    }
    if (first) return Opcode::rc_write_first;
    if (!last) return Opcode::rc_write_middle;
    return has_immediate(work) ? Opcode::rc_write_last_imm : Opcode::rc_write_last;
  }
  if (first && last) return has_immediate(work) ? Opcode::rc_send_only_imm : Opcode::rc_send_only;
  if (first) return Opcode::rc_send_first;
  if (!last) return Opcode::rc_send_middle;
  return has_immediate(work) ? Opcode::rc_send_last_imm : Opcode::rc_send_last;
}

}  // namespace

std::uint32_t RequesterPart::payload_of(const SendEntry& entry, std::uint32_t packet) const {
  const std::uint64_t mtu = core_.config.payload_mtu;
  const std::uint64_t offset = packet * mtu;
  return static_cast<std::uint32_t>(std::min(mtu, entry.request.length - offset));
}

std::uint32_t RequesterPart::wire_of(const QueuePair& qp, const SendEntry& entry,
                                     std::uint32_t packet) const {
  const std::uint32_t payload = payload_of(entry, packet);
  const bool last = packet + 1 == entry.packets;
  std::uint32_t frame = qp.header.header_bytes + ((payload + 3U) & ~3U) + 8U;
  if (packet == 0 && is_write(entry.request.opcode)) frame += wire::Reth::kBytes;
  if (last && has_immediate(entry.request.opcode)) frame += wire::kImmediateBytes;
  return core_.info.wire.wire_bytes(frame, payload);
}

RequesterPart::Span RequesterPart::span_of(const QueuePair& qp, const SendEntry& entry,
                                           std::uint32_t from, std::uint32_t to) const {
  if (from >= to) return {};
  const std::uint64_t mtu = core_.config.payload_mtu;
  Span span;
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
  if (qp.state == QpState::error) {
    Completion completion;
    completion.wr_id = request.wr_id;
    completion.at = core_.now;
    completion.qp_number = qp.number;
    completion.status = CompletionStatus::flushed;
    completion.opcode = completion_opcode(request.opcode);
    core_.complete(qp.config.send_cq, completion);
    return PostResult::ok;
  }
  if (qp.state != QpState::rts) return PostResult::bad_state;
  if (request.length > kMaxMessageBytes) return PostResult::bad_length;
  if (r.queue.full()) return PostResult::queue_full;
  if (request.length != 0) {
    const Region* region = core_.regions.find(request.local_key);
    if (region == nullptr || !region->covers(request.local_address, request.length)) {
      return PostResult::bad_key;
    }
  }
  const std::uint64_t mtu = core_.config.payload_mtu;
  const auto packets =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (request.length + mtu - 1) / mtu));
  // All PSNs in flight must stay comparable (vol. 1, 9.7.2).
  if (distance(r.tail_psn, r.una_psn) + static_cast<std::int64_t>(packets) >= (1 << 23)) {
    return PostResult::queue_full;
  }
  r.queue.push(request, r.tail_psn, packets);
  r.tail_psn = r.tail_psn + packets;
  r.backlog_bytes += request.length;
  core_.contexts[qp.context].backlog_bytes += request.length;
  return PostResult::ok;
}

std::uint32_t RequesterPart::next_wire_bytes(const QueuePair& qp) const {
  const RequesterState& r = qp.requester;
  return wire_of(qp, r.queue.at(r.cursor), r.cursor_packet);
}

// False when the source answers later; the queue pair has then left its context's ring.
bool RequesterPart::fill_payload(QueuePair& qp, Packet& packet, const SendEntry& entry,
                                 std::uint64_t offset, std::uint32_t bytes) {
  const std::uint32_t padded = (bytes + 3U) & ~3U;
  packet.payload_bytes = static_cast<std::uint16_t>(padded);
  packet.payload_kind = PayloadKind::none;
  if (bytes == 0) return true;
  const Region* region = core_.regions.find(entry.request.local_key);
  const std::uint64_t address = entry.request.local_address + offset;
  if (region == nullptr || !region->covers(address, bytes)) {
    fail(qp, CompletionStatus::local_protection_error);  // deregistered under way
    return false;
  }
  if (region->kind == RegionKind::elided) {
    // For a SEND the receiver knows no address: the digest stands for the place in the message.
    packet.payload_kind = PayloadKind::elided;
    packet.digest = is_write(entry.request.opcode)
                        ? elided_digest(entry.request.remote_address + offset, bytes)
                        : elided_digest(offset, bytes);
    return true;
  }
  assert(packet.payload != nullptr && padded <= core_.info.payload_room);
  packet.payload_kind = PayloadKind::owned;
  const std::span<std::byte> out{packet.payload, bytes};
  if (region->kind == RegionKind::plain) {
    std::memcpy(out.data(), region->memory + (address - region->base), bytes);
  } else {
    const MemoryResult result = region->provider->read(qp.number, address - region->base, out);
    if (result == MemoryResult::pending) {
      qp.requester.waiting_memory = true;
      ++core_.counters.memory_waits;
      scheduler_.deactivate(qp);
      return false;
    }
    if (result == MemoryResult::fault) {
      fail(qp, CompletionStatus::local_protection_error);
      return false;
    }
  }
  std::memset(packet.payload + bytes, 0, padded - bytes);
  return true;
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

Packet* RequesterPart::build_next(QueuePair& qp) {
  RequesterState& r = qp.requester;
  const SendEntry& entry = r.queue.at(r.cursor);
  const std::uint32_t index = r.cursor_packet;
  const std::uint64_t offset = std::uint64_t{index} * core_.config.payload_mtu;
  const std::uint32_t payload = payload_of(entry, index);
  const bool first = index == 0;
  const bool last = index + 1 == entry.packets;

  Packet* packet = core_.pool.alloc();
  if (packet == nullptr) {
    ++core_.counters.no_packet;
    return nullptr;
  }
  if (!fill_payload(qp, *packet, entry, offset, payload)) {
    core_.pool.free(packet);
    return nullptr;
  }

  wire::TransportFields fields;
  fields.opcode = opcode_of(entry.request.opcode, first, last);
  fields.dest_qpn = qp.remote_number;
  fields.psn = r.next_psn;
  fields.payload_bytes = payload;
  fields.ack_request = last || wants_ack(qp);
  fields.solicited = last && entry.request.solicited;
  wire::Reth reth;
  if (first && is_write(entry.request.opcode)) {
    reth.address = entry.request.remote_address;
    reth.rkey = entry.request.remote_key;
    reth.length = static_cast<std::uint32_t>(entry.request.length);
  }
  packet->header_bytes = static_cast<std::uint16_t>(wire::build_data(
      qp.header, wire::HeaderBuffer{packet->header}, fields, &reth, entry.request.immediate));
  packet->bth_offset = static_cast<std::uint16_t>(qp.header.bth_offset());
  packet->traffic_class = qp.config.traffic_class;
  packet->ecn = Ecn::ect0;
  packet->wire_bytes = core_.info.wire.wire_bytes(packet->frame_bytes(), payload);
  if (!core_.info.computes_icrc) {
    packet->icrc = wire::icrc(packet->header_view(), qp.header.l3_offset, packet->payload_view());
  }

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
  core_.counters.tx_wire_bytes += packet->wire_bytes;
  ++r.next_psn;
  if (last) {
    ++r.cursor;
    r.cursor_packet = 0;
  } else {
    ++r.cursor_packet;
  }
  if (r.inflight_bytes == 0) arm_timer(qp);
  r.inflight_bytes += packet->wire_bytes;
  r.backlog_bytes -= payload;
  core_.contexts[qp.context].backlog_bytes -= payload;
  return packet;
}

}  // namespace paceline::transport
