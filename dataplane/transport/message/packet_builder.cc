#include "dataplane/transport/message/packet_builder.h"

#include <algorithm>
#include <cstring>

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/message/qp_failure.h"
#include "dataplane/transport/message/scatter_gather.h"
#include "dataplane/wire/packet/build.h"

namespace paceline::transport {

using wire::Opcode;

void PacketBuilder::build_read(EngineCore& core, QueuePair& qp, Packet& packet,
                               const SendEntry& entry, std::uint32_t from, std::uint32_t count) {
  const QueuedRequest& request = entry.request;
  const wire::HeaderBuffer out{packet.header};
  const Psn psn = entry.first_psn + from;
  if ((entry.form & entry_form::names_queue) != 0) wire::set_xrc_srq(qp.header, request.target_srq);
  std::size_t header_bytes;
  if (request.opcode == WorkOpcode::read) {
    const std::uint64_t offset = std::uint64_t{from} * qp.mtu;
    const std::uint64_t bytes =
        std::min(request.length - offset, std::uint64_t{count} * std::uint64_t{qp.mtu});
    const wire::Reth reth{request.remote_address + offset, request.remote_key,
                          static_cast<std::uint32_t>(bytes)};
    header_bytes = wire::build_read_request(qp.header, out, qp.remote_number, psn, reth, true,
                                            from + count != entry.packets);
  } else {
    const bool swap = request.opcode == WorkOpcode::compare_swap;
    const wire::AtomicEth atomic{request.remote_address, request.remote_key, request.swap_add,
                                 swap ? request.compare : 0};
    header_bytes = wire::build_atomic(
        qp.header, out, swap ? wire::Opcode::rc_compare_swap : wire::Opcode::rc_fetch_add,
        qp.remote_number, psn, atomic);
  }
  packet.header_bytes = static_cast<std::uint16_t>(header_bytes);
  packet.payload_bytes = 0;
  packet.payload_kind = PayloadKind::none;
  core.finish_packet(qp, packet, 0);
}

// The opcode of packet `first`/`last` of a message, as the reliable service has it.
Opcode PacketBuilder::opcode_of(WorkOpcode work, bool first, bool last) {
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

// The segments of the request that is, or is about to be put, at `position`.
std::span<const Segment> PacketBuilder::segments_of(const QueuePair& qp, std::uint32_t position) {
  const RequesterState& r = qp.requester;
  const std::size_t place = position & (r.queue.capacity() - 1);
  return {&r.segments[place * qp.config.max_send_segments], qp.config.max_send_segments};
}

// False when the source answers later, or never (the queue pair has then failed).
bool PacketBuilder::fill_payload(EngineCore& core, QueuePair& qp, Packet& packet,
                                 std::uint32_t position, std::uint64_t offset,
                                 std::uint32_t bytes) {
  packet.payload_bytes = 0;
  packet.payload_kind = PayloadKind::none;
  if (bytes == 0) return true;
  const RequesterState& r = qp.requester;
  const QueuedRequest& request = r.queue.at(position).request;
  const std::uint64_t address = request.local_address + offset;
  if (request.segment_count != 0 || request.inlined) {
    return fill_gathered(core, qp, packet, position, offset, bytes);
  }
  const Region* region = core.regions.find(request.local_key);
  MemoryResult result = MemoryResult::fault;  // deregistered meanwhile
  if (region != nullptr && region->grants(qp.config.pd, access::local_read, address, bytes)) {
    if (core.info.lends_payload && !qp.unreliable) {
      // A packet that is sent twice may still be in flight when its request completes, so it has a
      // copy of its bytes: only what the acknowledgement is for may be lent.
      if (r.repair || r.position.next() != r.position.end()) {
        core.pool.end_loans();
      } else if (lend_payload(*region, address, bytes, core.pool, packet)) {
        core.counters.tx_lent_bytes += bytes;
        return true;
      }
    }
    const std::uint64_t place = is_write(request.opcode) ? request.remote_address + offset : offset;
    result = load_payload(*region, qp.number, address, bytes, place, packet);
  }
  return filled(core, qp, result);
}

// The same from a list of segments, or inline data.
bool PacketBuilder::fill_gathered(EngineCore& core, QueuePair& qp, Packet& packet,
                                  std::uint32_t position, std::uint64_t offset,
                                  std::uint32_t bytes) {
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
  SegmentAccess from{core.regions, segments_of(qp, position).first(request.segment_count)};
  from.needed = access::local_read;
  from.pd = qp.config.pd;
  from.qp_number = qp.number;
  from.offset = offset;
  from.bytes = bytes;
  return filled(core, qp, gather_payload(from, place, packet));
}

bool PacketBuilder::filled(EngineCore& core, QueuePair& qp, MemoryResult result) {
  if (result == MemoryResult::done) return true;
  if (result == MemoryResult::pending) {
    qp.requester.stops |= requester_stop::memory;
    ++core.counters.memory_waits;
  } else {
    QpFailure::fail_sends(core, qp, CompletionStatus::local_protection_error);
  }
  return false;
}

// Headers of packet `index` of a SEND or WRITE, whose payload is in place.
void PacketBuilder::build_data(EngineCore& core, QueuePair& qp, Packet& packet,
                               const SendEntry& entry, std::uint32_t index, Psn psn,
                               std::uint32_t payload, bool ack_request) {
  const QueuedRequest& request = entry.request;
  const bool last = index + 1 == entry.packets;
  bool split = false;
  if (entry.form != 0) [[unlikely]] {
    split = entry.split();
    if ((entry.form & entry_form::names_queue) != 0)
      wire::set_xrc_srq(qp.header, request.target_srq);
  }
  wire::TransportFields fields;
  fields.dest_qpn = qp.remote_number;
  fields.psn = psn;
  fields.payload_bytes = payload;
  fields.ack_request = ack_request;
  // Nobody is notified of the end of a plain WRITE (vol. 1, 9.2.3). Moreover, a peer that has
  // turned to selective repeat before this end would read the bit as "the message continues".
  fields.solicited = last && request.solicited && takes_receive(request.opcode);
  wire::Reth reth;
  if (split) [[unlikely]] {
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
  core.finish_packet(qp, packet, payload);
}

// Switches are to stamp the packet, if the records come back and the algorithm wants them.
void PacketBuilder::want_telemetry(EngineCore& core, const QueuePair& qp, Packet& packet) {
  if ((core.contexts[qp.context].wants & cc::kWantsTelemetry) == 0) return;
  if (qp.peer == kNoIndex || !core.peers[qp.peer].telemetry) return;
  packet.flags = static_cast<std::uint8_t>(packet.flags | packet_flag::telemetry);
  packet.records = 0;
  packet.path = 0;
  packet.wire_bytes += wire::kIntHeaderBytes;
  core.counters.tx_wire_bytes += wire::kIntHeaderBytes;
}

}  // namespace paceline::transport
