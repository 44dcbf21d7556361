// The responder under selective repeat. A packet ahead of the expected one is not lost: a WRITE
// Only is placed at once (its RETH says where), anything else is held until its turn; completions
// and message numbers advance in order all the same. Every answer is an XACK, given once for each
// packet that arrives, after what it set free has been dealt with.
#include <algorithm>
#include <cstring>

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/requester.h"
#include "dataplane/transport/responder.h"
#include "dataplane/wire/xack.h"

namespace paceline::transport {

void ResponderPart::note_arrival(QueuePair& qp, const wire::ParsedPacket& parsed,
                                 const Packet& packet) {
  SelectiveReceive& s = qp.selective->receive;
  s.trigger = parsed.psn;
  s.trigger_port = parsed.udp_source_port;
  s.arrival = core_.arrived_at();
  s.trigger_records = 0;
  if ((packet.flags & packet_flag::telemetry) != 0) [[unlikely]] {
    s.trigger_records = std::min<std::uint16_t>(packet.records, kIntHops);
    s.trigger_path = packet.path;
    std::memcpy(s.records.data(), tail_of(packet), s.trigger_records * wire::kIntRecordBytes);
  }
  if (parsed.ecn != Ecn::ce) return;
  s.marked = true;
  s.marked_port = parsed.udp_source_port;
  s.marked_bytes += packet.wire_bytes;
}

// Takes the packet. False when it, or what it set free, waits for memory.
bool ResponderPart::take_selective(QueuePair& qp, const wire::ParsedPacket& parsed,
                                   Packet* packet) {
  ResponderState& r = qp.responder;
  note_arrival(qp, parsed, *packet);
  const Psn was = r.expected;
  const bool gap = before(was, qp.selective->receive.highest);
  switch (accept(qp, parsed, *packet)) {
    case Outcome::pending:
      wait_for_memory(qp, packet);
      return false;
    case Outcome::held: {
      SelectiveReceive& s = qp.selective->receive;
      s.held[s.slot(parsed.psn)] = packet;
      break;
    }
    case Outcome::done:
      core_.pool.free(packet);
      if (r.expected != was) {
        forget_before(qp, was);
        take_early(qp);
        // Whether it asks or not: what it completes has asked before, and nothing need follow
        // (after RFC 5681, 4.2: what fills a gap is acknowledged at once).
        if (gap) qp.selective->receive.answer_due = true;
      }
      break;
  }
  give_selective_answer(qp);
  return (r.halts & responder_halt::memory) == 0;
}

// A packet that is not the expected one.
ResponderPart::Outcome ResponderPart::accept_early(QueuePair& qp, const wire::ParsedPacket& parsed,
                                                   const Packet& packet) {
  SelectiveReceive& s = qp.selective->receive;
  const std::int32_t ahead = distance(parsed.psn, qp.responder.expected);
  ++core_.counters.out_of_sequence;
  if (ahead >= s.window()) {
    ++core_.counters.beyond_window;
    ++core_.counters.dropped_gap;
    return Outcome::done;
  }
  s.answer_due = true;
  if (s.has(parsed.psn)) {
    ++core_.counters.duplicates;
    ++core_.counters.dropped_stale;
    s.duplicate = true;
    return Outcome::done;
  }
  const bool placed = !core_.config.place_in_order && place_early(qp, parsed, packet);
  // Held packets must leave enough for the one that is waited for, and for answers.
  if (!placed && (s.held_packets == core_.config.reorder_packets || core_.pool.scarce())) {
    ++core_.counters.beyond_window;
    ++core_.counters.dropped_gap;
    return Outcome::done;
  }
  s.set(s.received, parsed.psn);
  if (before(s.highest, parsed.psn + 1)) s.highest = parsed.psn + 1;
  if (placed) {
    ++core_.counters.placed_early;
    ++core_.counters.rx_data_packets;
    core_.counters.rx_data_bytes += parsed.payload_bytes;
    qp.counters.rx_bytes += parsed.payload_bytes;
    if (parsed.solicited) s.set(s.continued, parsed.psn);
    return Outcome::done;
  }
  ++core_.counters.held_early;
  ++s.held_packets;
  return Outcome::held;
}

// Whether the packet was a WRITE that could be placed as it is. What cannot be, is judged when its
// turn comes.
bool ResponderPart::place_early(QueuePair& qp, const wire::ParsedPacket& parsed,
                                const Packet& packet) {
  if (parsed.opcode != wire::Opcode::rc_write_only) return false;
  const wire::Reth& reth = parsed.ext.reth;
  if (reth.length != parsed.payload_bytes || reth.length > qp.mtu) return false;
  if (parsed.solicited && reth.length != qp.mtu) return false;
  if (reth.length == 0) return true;
  const Region* region = writable(qp, reth);
  if (region == nullptr) return false;
  bool mismatch = false;
  const MemoryResult result = store_payload(*region, {qp.number, true}, reth.address, reth.length,
                                            reth.address, packet, mismatch);
  if (mismatch) ++core_.counters.digest_mismatches;
  return result == MemoryResult::done;
}

// The expected packet has been accepted, from `was` on: what lay within is no longer ahead.
void ResponderPart::forget_before(QueuePair& qp, Psn was) {
  SelectiveReceive& s = qp.selective->receive;
  const Psn end = qp.responder.expected;
  if (before(s.highest, end)) s.highest = end;
  const auto count = std::min(distance(end, was), s.window());
  for (std::int32_t i = 0; i < count; ++i) {
    const Psn psn = was + static_cast<std::uint32_t>(i);
    s.clear(psn);
    if (Packet*& held = s.held[s.slot(psn)]; held != nullptr) {
      ++core_.counters.dropped_stale;
      core_.pool.free(held);
      held = nullptr;
      --s.held_packets;
    }
  }
}

// Takes in what had come early, for as long as it is next.
void ResponderPart::take_early(QueuePair& qp) {
  ResponderState& r = qp.responder;
  SelectiveReceive& s = qp.selective->receive;
  while (r.halts == 0 && qp.state != QpState::error && s.refusal.is_ack() && s.has(r.expected)) {
    const Psn psn = r.expected;
    Packet*& slot = s.held[s.slot(psn)];
    if (slot == nullptr) {  // a WRITE that was placed
      if (r.in_message) {
        refuse(qp, wire::NakCode::invalid_request);
        return;
      }
      const bool ends = !s.test(s.continued, psn);
      s.clear(psn);
      ++r.expected;
      if (ends) {
        r.msn = next_msn(r.msn);
        s.continued_bytes = 0;
      } else {
        s.continued_bytes += qp.mtu;
      }
      continue;
    }
    Packet* const packet = slot;
    slot = nullptr;
    --s.held_packets;
    s.clear(psn);
    wire::ParsedPacket parsed;
    const wire::ParseError error =
        wire::parse_brief(packet->header_view(), packet->payload_bytes, {}, parsed);
    if (error == wire::ParseError::ok && accept(qp, parsed, *packet) == Outcome::pending) {
      wait_for_memory(qp, packet);
      return;
    }
    core_.pool.free(packet);
    if (r.expected == psn) return;  // put off, or refused
    forget_before(qp, psn);
  }
}

void ResponderPart::give_selective_answer(QueuePair& qp) {
  SelectiveReceive& s = qp.selective->receive;
  if (!s.answer_due) return;
  s.answer_due = false;
  const wire::Aeth aeth = s.refusal.is_ack() ? ack_of(qp, qp.responder.msn) : s.refusal;
  s.refusal = {};
  send_xack(qp, qp.responder.expected, aeth);
}

void ResponderPart::send_xack(QueuePair& qp, Psn expected, wire::Aeth aeth) {
  SelectiveReceive& s = qp.selective->receive;
  if (qp.peer == kNoIndex) return;
  Packet* packet = core_.alloc_headers_only();
  if (packet == nullptr) return;  // as if lost: the sender asks again
  wire::Xack xack;
  xack.aeth = aeth;
  xack.trigger = s.trigger;
  xack.trigger_port = s.trigger_port;
  xack.duplicate = s.duplicate;
  xack.marked = s.marked;
  xack.marked_port = s.marked_port;
  xack.marked_bytes = s.marked_bytes;
  xack.arrival_ns = static_cast<std::uint32_t>(to_nanos(s.arrival).count);
  const std::int64_t hold = (core_.now - s.arrival).count / 1000;
  xack.hold_ns = static_cast<std::uint16_t>(std::min<std::int64_t>(hold, 0xFFFF));
  xack.trimmed = s.trimmed;
  s.duplicate = s.marked = s.trimmed = false;
  if (s.trigger_records != 0 && core_.peers[qp.peer].telemetry) [[unlikely]] {
    xack.path = s.trigger_path;
    xack.records = std::span(s.records).first(s.trigger_records * wire::kIntRecordBytes);
  }
  s.trigger_records = 0;
  // The bits around the packet that triggered it, if they are beyond the first ones.
  const Psn first = expected + 1;
  const std::int32_t beyond = distance(s.trigger, first) - static_cast<int>(wire::kXackBits) + 1;
  if (beyond > 0) xack.bitmap_offset = static_cast<std::uint16_t>(beyond);
  const std::int32_t end = std::min(distance(s.highest, first), s.window() - 1);
  for (std::uint32_t i = 0; i < wire::kXackBits; ++i) {
    const auto at = static_cast<std::int32_t>(xack.bitmap_offset + i);
    if (at >= end) break;
    if (s.has(first + static_cast<std::uint32_t>(at))) xack.set_bit(i);
  }
  const wire::HeaderTemplate& header = core_.peers[qp.peer].control;
  packet->header_bytes = static_cast<std::uint16_t>(wire::build_xack(
      header, wire::HeaderBuffer{packet->header}, qp.remote_number, expected, xack));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  if (aeth.is_ack()) ++core_.counters.acks_sent;
  core_.queue_control(packet);
}

}  // namespace paceline::transport
