#include "dataplane/transport/requester.h"

#include <algorithm>
#include <cstring>

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/scatter_gather.h"

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
                                        std::uint32_t packet) {
  const std::uint64_t mtu = qp.mtu;
  const std::uint64_t offset = packet * mtu;
  return static_cast<std::uint32_t>(std::min(mtu, entry.request.length - offset));
}

std::uint32_t RequesterPart::wire_of(const EngineCore& core, const QueuePair& qp,
                                     const SendEntry& entry, std::uint32_t packet) {
  if (entry.answered) return request_wire_of(core, qp, entry);
  const std::uint32_t payload = payload_of(qp, entry, packet);
  const bool last = packet + 1 == entry.packets;
  std::uint32_t frame = qp.header.header_bytes + ((payload + 3U) & ~3U) + 8U;
  if ((packet == 0 && is_write(entry.request.opcode)) || entry.split) frame += wire::Reth::kBytes;
  if (last && has_last_word(entry.request.opcode)) frame += wire::kImmediateBytes;
  return core.info.wire.wire_bytes(frame, payload);
}

RequesterPart::Span RequesterPart::span_of(const QueuePair& qp, const SendEntry& entry,
                                           std::uint32_t from, std::uint32_t to) const {
  if (from >= to) return {};
  Span span;
  if (entry.answered) {
    // One packet stands for all sequence numbers: it is in flight until the last is answered.
    if (to == entry.packets) span.wire = request_wire_of(core_, qp, entry);
    return span;
  }
  const std::uint64_t mtu = qp.mtu;
  span.payload =
      std::min(to * mtu, entry.request.length) - std::min(from * mtu, entry.request.length);
  span.wire = wire_of(core_, qp, entry, from);
  if (to - from > 1) span.wire += wire_of(core_, qp, entry, to - 1);
  if (to - from > 2)
    span.wire += std::uint64_t{to - from - 2} * wire_of(core_, qp, entry, from + 1);
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

// Copies what the request refers to to the place of the queue that it will have. Nothing is
// changed but that place, which is free.
PostResult RequesterPart::keep_source(QueuePair& qp, const WorkRequest& posted,
                                      QueuedRequest& kept) {
  RequesterState& r = qp.requester;
  if (r.queue.full()) return PostResult::queue_full;
  const std::size_t place = r.queue.tail() & (r.queue.capacity() - 1);
  if (posted.inline_bytes != nullptr) {
    if (is_answered(posted.opcode)) return PostResult::bad_opcode;
    // Where payloads are elided, there is nothing to put the bytes into.
    const std::uint32_t most = core_.info.payload_room == 0 ? 0 : qp.config.max_inline;
    if (posted.length > most) return PostResult::bad_length;
    if (posted.length != 0) {
      std::memcpy(&r.inline_bytes[place * qp.config.max_inline], posted.inline_bytes,
                  posted.length);
    }
    kept.inlined = true;
    kept.segment_count = 0;
    return PostResult::ok;
  }
  if (posted.segment_count > qp.config.max_send_segments) return PostResult::too_many_segments;
  kept.length = 0;
  for (unsigned i = 0; i < posted.segment_count; ++i) kept.length += posted.segments[i].length;
  if (posted.segment_count == 1) {
    kept.local_address = posted.segments[0].address;
    kept.local_key = posted.segments[0].key;
    kept.segment_count = 0;
    return PostResult::ok;
  }
  if (is_atomic(posted.opcode)) return PostResult::bad_length;  // its result is in one place
  std::copy_n(posted.segments, posted.segment_count,
              &r.segments[place * qp.config.max_send_segments]);
  return PostResult::ok;
}

// Of the request at (or about to be put at) `position`.
std::span<const Segment> RequesterPart::segments_of(const QueuePair& qp,
                                                    std::uint32_t position) const {
  const RequesterState& r = qp.requester;
  const std::size_t place = position & (r.queue.capacity() - 1);
  return {&r.segments[place * qp.config.max_send_segments], qp.config.max_send_segments};
}

PostResult RequesterPart::post(QueuePair& qp, const WorkRequest& posted) {
  if (qp.state == QpState::error || qp.state == QpState::sqe) {
    Completion completion;
    completion.wr_id = posted.wr_id;
    completion.at = core_.now;
    completion.qp_number = qp.number;
    completion.status = CompletionStatus::flushed;
    completion.opcode = completion_opcode(posted.opcode);
    core_.complete(qp.config.send_cq, completion);
    return PostResult::ok;
  }
  if (!can_send(qp.state)) return PostResult::bad_state;
  if (posted.segment_count != 0 || posted.inline_bytes != nullptr) {
    QueuedRequest kept = static_cast<const QueuedRequest&>(posted);
    const PostResult result = keep_source(qp, posted, kept);
    return result == PostResult::ok ? post_kept(qp, kept) : result;
  }
  return post_kept(qp, posted);
}

// Segments and inline data, if any, are the queue pair's own copy.
PostResult RequesterPart::post_kept(QueuePair& qp, const QueuedRequest& request) {
  RequesterState& r = qp.requester;
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
  if (request.segment_count != 0) {
    const std::uint8_t needed = answered ? access::local_write : access::local_read;
    if (!segments_granted(core_.regions,
                          segments_of(qp, r.queue.tail()).first(request.segment_count),
                          qp.config.pd, needed)) {
      return PostResult::bad_key;
    }
  } else if (request.length != 0 && !request.inlined) {
    const Region* region = core_.regions.find(request.local_key);
    const std::uint8_t needed = answered ? access::local_write : access::local_read;
    if (region == nullptr ||
        !region->grants(qp.config.pd, needed, request.local_address, request.length)) {
      return PostResult::bad_key;
    }
  }
  if (distance(r.tail_psn, r.una_psn) + static_cast<std::int32_t>(packets) >= kWindow) {
    return PostResult::queue_full;
  }
  r.ssn = next_msn(r.ssn);
  if (r.queue.empty() && qp.selective != nullptr && !r.selective) begin_selective(qp);
  const bool split = r.selective && is_write(request.opcode);
  r.queue.push({r.tail_psn, packets, r.ssn, answered, split, request});
  r.tail_psn = r.tail_psn + packets;
  if (answered || request.fence) ++r.ordered;
  if (r.ordered != 0) check_order(qp);
  if (answered && r.selective) update_window(qp);
  if (answered) return PostResult::ok;  // what it moves, the peer sends
  if (qp.config.type == QpType::ud) ++core_.handles[request.address_handle >> 8].uses;
  r.backlog_bytes += request.length;
  core_.contexts[context_of(core_, qp, request)].backlog_bytes += request.length;
  return PostResult::ok;
}

std::uint32_t RequesterPart::next_wire_bytes(const EngineCore& core, const QueuePair& qp) {
  const RequesterState& r = qp.requester;
  if (r.repair) [[unlikely]]
    return repair_wire_bytes(core, qp);
  return wire_of(core, qp, r.queue.at(r.cursor), r.cursor_packet);
}

// False when the source answers later, or not at all (the queue pair has failed then).
bool RequesterPart::fill_payload(QueuePair& qp, Packet& packet, std::uint32_t position,
                                 std::uint64_t offset, std::uint32_t bytes) {
  packet.payload_bytes = 0;
  packet.payload_kind = PayloadKind::none;
  if (bytes == 0) return true;
  const RequesterState& r = qp.requester;
  const QueuedRequest& request = r.queue.at(position).request;
  const std::uint64_t address = request.local_address + offset;
  if (request.segment_count != 0 || request.inlined) {
    return fill_gathered(qp, packet, position, offset, bytes);
  }
  const Region* region = core_.regions.find(request.local_key);
  MemoryResult result = MemoryResult::fault;  // deregistered under way
  if (region != nullptr && region->grants(qp.config.pd, access::local_read, address, bytes)) {
    if (core_.info.lends_payload && !qp.unreliable) {
      // What is sent twice may be on its way when the request is completed: by then all copies of
      // it have their bytes. So what is lent is what the acknowledgement is for.
      if (r.repair || r.next_psn != r.max_psn) {
        core_.pool.end_loans();
      } else if (lend_payload(*region, address, bytes, core_.pool, packet)) {
        core_.counters.tx_lent_bytes += bytes;
        return true;
      }
    }
    const std::uint64_t place = is_write(request.opcode) ? request.remote_address + offset : offset;
    result = load_payload(*region, qp.number, address, bytes, place, packet);
  }
  return filled(qp, result);
}

// The same from a list of segments, or inline data.
bool RequesterPart::fill_gathered(QueuePair& qp, Packet& packet, std::uint32_t position,
                                  std::uint64_t offset, std::uint32_t bytes) {
  const RequesterState& r = qp.requester;
  const QueuedRequest& request = r.queue.at(position).request;
  if (request.inlined) {
    const std::size_t place = position & (r.queue.capacity() - 1);
    const std::byte* const from = &r.inline_bytes[place * qp.config.max_inline];
    const std::uint32_t padded = (bytes + 3U) & ~3U;
    packet.payload_bytes = static_cast<std::uint16_t>(padded);
    packet.payload_kind = PayloadKind::owned;
    std::memcpy(packet.payload, from + offset, bytes);
    std::memset(packet.payload + bytes, 0, padded - bytes);
    return true;
  }
  const std::uint64_t place = is_write(request.opcode) ? request.remote_address + offset : offset;
  SegmentAccess from{core_.regions, segments_of(qp, position).first(request.segment_count)};
  from.needed = access::local_read;
  from.pd = qp.config.pd;
  from.qp_number = qp.number;
  from.offset = offset;
  from.bytes = bytes;
  return filled(qp, gather_payload(from, place, packet));
}

bool RequesterPart::filled(QueuePair& qp, MemoryResult result) {
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
  const std::uint64_t filled = context.inflight_bytes + next_wire_bytes(core_, qp);
  if (filled >= context.decision.window_bytes) return true;
  return core_.now - r.ack_requested_at >= qp.config.retransmit_timeout / 4;
}

// Headers of packet `index` of a SEND or WRITE, whose payload is in place.
void RequesterPart::build_data(QueuePair& qp, Packet& packet, const SendEntry& entry,
                               std::uint32_t index, Psn psn, std::uint32_t payload,
                               bool ack_request) {
  const QueuedRequest& request = entry.request;
  const bool last = index + 1 == entry.packets;
  wire::TransportFields fields;
  fields.dest_qpn = qp.remote_number;
  fields.psn = psn;
  fields.payload_bytes = payload;
  fields.ack_request = ack_request;
  // Nobody hears of the end of a plain WRITE (vol. 1, 9.2.3). What is more, to a peer that has
  // turned to selective repeat before this end its bit would say that the message goes on.
  fields.solicited = last && request.solicited && takes_receive(request.opcode);
  wire::Reth reth;
  if (entry.split) [[unlikely]] {
    // Each packet says where it goes. One that does not end its message has the solicited bit,
    // which means nothing in a WRITE without immediate (docs/wire-protocol.md).
    fields.opcode = last ? opcode_of(request.opcode, true, true) : Opcode::rc_write_only;
    if (!last) fields.solicited = true;
    reth.address = request.remote_address + std::uint64_t{index} * qp.mtu;
    reth.rkey = request.remote_key;
    reth.length = payload;
  } else {
    fields.opcode = opcode_of(request.opcode, index == 0, last);
    if (index == 0 && is_write(request.opcode)) {
      reth.address = request.remote_address;
      reth.rkey = request.remote_key;
      reth.length = static_cast<std::uint32_t>(request.length);
    }
  }
  const std::uint32_t word =
      request.opcode == WorkOpcode::send_invalidate ? request.remote_key : request.immediate;
  packet.header_bytes = static_cast<std::uint16_t>(
      wire::build_data(qp.header, wire::HeaderBuffer{packet.header}, fields, &reth, word));
  core_.finish_packet(qp, packet, payload);
}

bool RequesterPart::build_next(QueuePair& qp, Packet& packet) {
  RequesterState& r = qp.requester;
  if (r.selective) [[unlikely]] {
    wire::set_source_port(qp.header, qp.selective->paths.next_port());
    if (r.repair) return build_repair(qp, packet);
  }
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
  const bool last = index + 1 == entry.packets;
  if (!fill_payload(qp, packet, r.cursor, offset, payload)) return false;
  const bool ack_request = last || wants_ack(qp) || beyond_credits(r, entry) > 0;
  build_data(qp, packet, entry, index, r.next_psn, payload, ack_request);

  if (ack_request) {
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
    core_.count_data(qp.peer);
    core_.counters.tx_data_bytes += payload;
  } else {
    core_.count_retransmitted(qp);
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
  if (r.inflight_bytes == 0 && !r.selective) arm_timer(qp);
  if (r.selective) [[unlikely]] {
    want_telemetry(qp, packet);
    note_sent(qp, r.next_psn - 1, packet.wire_bytes, payload, false);
  }
  r.inflight_bytes += packet.wire_bytes;
  r.backlog_bytes -= payload;
  core_.contexts[qp.context].backlog_bytes -= payload;
  return true;
}

}  // namespace paceline::transport
