// The requester's side of READ and atomic operations (InfiniBand vol. 1, 9.7.2.6, 9.7.5.1.1 and
// 9.7.5.1.3). One request packet is sent; its responses carry as many sequence numbers as the
// request has taken, and each acknowledges everything before it. What is missing is asked for again
// from the first missing response on, with address, length and sequence number moved there.
#include <algorithm>
#include <array>
#include <cstring>

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/requester.h"
#include "dataplane/transport/scatter_gather.h"

namespace paceline::transport {

std::uint32_t RequesterPart::request_wire_of(const EngineCore& core, const QueuePair& qp,
                                             const SendEntry& entry) {
  const std::size_t extension =
      is_atomic(entry.request.opcode) ? wire::AtomicEth::kBytes : wire::Reth::kBytes;
  const auto frame = static_cast<std::uint32_t>(qp.header.header_bytes + extension + 8U);
  return core.info.wire.wire_bytes(frame, 0);
}

// The request packet for the entry at the cursor, asking for its responses from cursor_packet on:
// under selective repeat for as many as are kept (update_window), the rest follows in requests of
// its own.
void RequesterPart::build_request(QueuePair& qp, Packet& packet, const SendEntry& entry) {
  RequesterState& r = qp.requester;
  std::uint32_t count = entry.packets - r.cursor_packet;
  const Psn first = entry.first_psn + r.cursor_packet;
  if (r.selective) {
    const std::int32_t room = qp.selective->send.window() - distance(first, r.una_psn);
    count = std::min(count, static_cast<std::uint32_t>(room));
  }
  build_read(qp, packet, entry, r.cursor_packet, count);

  // Its answer acknowledges all before it, too.
  r.since_ack_request = 0;
  r.ack_requested_at = core_.now;
  const Psn end = first + count;
  if (before(r.max_psn, end)) {
    r.max_psn = end;
    core_.count_data(qp.peer);
  } else {
    core_.count_retransmitted(qp);
  }
  r.next_psn = end;
  r.cursor_packet += count;
  if (r.cursor_packet == entry.packets) {
    ++r.cursor;
    r.cursor_packet = 0;
  }
  ++r.answers_due;
  check_order(qp);
  if (r.inflight_bytes == 0 && !r.selective) arm_timer(qp);
  r.inflight_bytes += packet.wire_bytes;
  if (r.selective) note_sent(qp, first, packet.wire_bytes, count, true);
}

// The request of a READ for `count` responses from response `from` on; or of an atomic.
void RequesterPart::build_read(QueuePair& qp, Packet& packet, const SendEntry& entry,
                               std::uint32_t from, std::uint32_t count) {
  const QueuedRequest& request = entry.request;
  const wire::HeaderBuffer out{packet.header};
  const Psn psn = entry.first_psn + from;
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
  core_.finish_packet(qp, packet, 0);
}

// Whether the request at the cursor may go on: the initiator depth (9.7.2.6), the fence, a send
// queue that is being drained and begins nothing, and the peer's credits (9.7.7.2: of the first
// message beyond them, one packet may go; but a WRITE takes its receive request with the last
// packet only, so no answer to an earlier one can bring the credit: all of it may go).
void RequesterPart::check_order(QueuePair& qp) {
  RequesterState& r = qp.requester;
  r.stops &= static_cast<std::uint8_t>(~requester_stop::order);
  if (r.cursor == r.queue.tail()) return;
  const SendEntry& entry = r.queue.at(r.cursor);
  if ((entry.answered && r.answers_due >= qp.config.max_rd_atomic) ||
      (entry.request.fence && r.cursor_packet == 0 && r.answers_due != 0) ||
      (r.draining && r.cursor_packet == 0 && r.next_psn == r.max_psn) ||
      beyond_credits(r, entry) > (r.cursor_packet == 0 || is_write(entry.request.opcode) ? 1 : 0)) {
    r.stops |= requester_stop::order;
  }
}

// SQD is reached when nothing that was begun is left (vol. 1, 10.3.1.5).
void RequesterPart::check_drained(QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (!r.draining || r.drained || r.una_psn != r.max_psn || r.cursor_packet != 0) return;
  r.drained = true;
  if (r.notify_drained) core_.events.push({AsyncEventKind::sq_drained, qp.number});
}

void RequesterPart::drain(QueuePair& qp, bool notify) {
  RequesterState& r = qp.requester;
  r.draining = true;
  r.drained = false;
  r.notify_drained = notify;
  ++r.ordered;
  check_order(qp);
  check_drained(qp);
  core_.actions.settle(qp);
}

void RequesterPart::undrain(QueuePair& qp) {
  RequesterState& r = qp.requester;
  r.draining = r.drained = false;
  --r.ordered;
  check_order(qp);
  core_.actions.resume_announced(qp);
}

// The oldest READ or atomic that begins before `end` and is incomplete.
SendEntry* RequesterPart::unanswered_before(QueuePair& qp, Psn end) {
  SendQueue& queue = qp.requester.queue;
  for (std::uint32_t p = queue.head(); p != queue.tail(); ++p) {
    SendEntry& entry = queue.at(p);
    if (!before(entry.first_psn, end)) break;
    if (entry.answered) return &entry;  // incomplete, or it would have left the queue
  }
  return nullptr;
}

// una_psn is a response that has not come, though a later one has (9.7.5.1.1, "implied NAK").
void RequesterPart::answers_lost(QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (r.gap_known) return;  // asked for again already; should that be lost, the timer knows
  r.gap_known = true;
  ++core_.counters.implied_naks;
  if (r.retries_left == 0) {
    fail(qp, CompletionStatus::retry_exceeded);
    return;
  }
  --r.retries_left;
  // No loss of ours: what was lost is the peer's data. The repeated request tells its algorithm.
  rewind(qp);
  core_.actions.resume_announced(qp);
}

void RequesterPart::on_response(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet) {
  RequesterState& r = qp.requester;
  if (!r.parked.empty()) {
    r.parked.push(packet);
    return;
  }
  const Outcome outcome = take_in(qp, parsed, *packet);
  if (outcome == Outcome::pending) {
    r.response_waits = true;
    ++core_.counters.memory_waits;
    r.parked.push(packet);
    return;
  }
  core_.pool.free(packet);
}

RequesterPart::Outcome RequesterPart::accept_response(QueuePair& qp,
                                                      const wire::ParsedPacket& parsed,
                                                      const Packet& packet) {
  RequesterState& r = qp.requester;
  if (!can_send(qp.state)) return Outcome::done;
  const Psn psn = parsed.psn;
  if (before(psn, r.una_psn) || !before(psn, r.max_psn)) {
    ++core_.counters.stale_acks;  // a repeated response, or a ghost
    return Outcome::done;
  }
  const SendEntry* entry = unanswered_before(qp, psn + 1);
  if (entry == nullptr) {
    ++core_.counters.stale_acks;  // names a SEND or WRITE: an answer to nothing that was asked
    return Outcome::done;
  }
  const Psn expected = before(entry->first_psn, r.una_psn) ? r.una_psn : entry->first_psn;
  if (psn != expected) {
    std::uint64_t acked = 0;
    if (expected != r.una_psn) acked = progress(qp, expected);  // all before it was answered
    report_ack(qp, acked, 0);
    answers_lost(qp);
    return Outcome::done;
  }
  if (const Taken taken = take_response(qp, *entry, parsed, packet); taken != Taken::yes) {
    return taken == Taken::pending ? Outcome::pending : Outcome::done;
  }
  if (parsed.properties.has_aeth() && parsed.ext.aeth.is_ack()) take_credits(qp, parsed.ext.aeth);
  r.probe_active = false;  // an answer may have waited its turn behind others: no measure
  report_ack(qp, progress(qp, psn + 1), 0);
  return Outcome::done;
}

// Checks the response against what `entry` asked for, and places it. Otherwise the queue pair has
// failed, or memory answers later. A run of responses may begin anywhere: the first after a
// repeated request is a First or an Only; under selective repeat it may end anywhere, too, and the
// peer may have turned to that before this end.
RequesterPart::Taken RequesterPart::take_response(QueuePair& qp, const SendEntry& entry,
                                                  const wire::ParsedPacket& parsed,
                                                  const Packet& packet) {
  const auto index = static_cast<std::uint32_t>(distance(parsed.psn, entry.first_psn));
  const bool last = index + 1 == entry.packets;
  const bool is_read = entry.request.opcode == WorkOpcode::read;
  const bool read_response = parsed.properties.operation == wire::Operation::read_response;
  const bool ends_well = core_.config.reliability == Reliability::selective ||
                         parsed.properties.ends_message() == last;
  if (is_read != read_response ||
      (is_read && (parsed.payload_bytes != payload_of(qp, entry, index) || !ends_well))) {
    fail(qp, CompletionStatus::bad_response, parsed.psn);
    return Taken::failed;
  }
  switch (place_response(qp, entry, parsed, packet)) {
    case MemoryResult::done:
      break;
    case MemoryResult::pending:
      return Taken::pending;
    case MemoryResult::fault:
      fail(qp, CompletionStatus::local_protection_error, parsed.psn);
      return Taken::failed;
  }
  ++core_.counters.rx_data_packets;
  core_.counters.rx_data_bytes += parsed.payload_bytes;
  qp.counters.rx_bytes += parsed.payload_bytes;
  return Taken::yes;
}

MemoryResult RequesterPart::place_response(QueuePair& qp, const SendEntry& entry,
                                           const wire::ParsedPacket& parsed, const Packet& packet) {
  const QueuedRequest& request = entry.request;
  const bool atomic = is_atomic(request.opcode);
  const auto index = static_cast<std::uint32_t>(distance(parsed.psn, entry.first_psn));
  const std::uint64_t offset = atomic ? 0 : std::uint64_t{index} * qp.mtu;
  const std::uint32_t bytes = atomic ? kAtomicBytes : parsed.payload_bytes;
  if (bytes == 0) return MemoryResult::done;
  bool mismatch = false;
  if (request.segment_count != 0) {
    const auto place = static_cast<std::uint32_t>(&entry - &qp.requester.queue.at(0));
    SegmentAccess into{core_.regions, segments_of(qp, place)};
    into.segments = into.segments.first(request.segment_count);
    into.pd = qp.config.pd;
    into.qp_number = qp.number;
    into.needed = access::local_write;
    into.offset = offset;
    into.bytes = bytes;
    const MemoryResult scattered =
        scatter_payload(into, request.remote_address + offset, packet, mismatch);
    if (mismatch) ++core_.counters.digest_mismatches;
    return scattered;
  }
  const std::uint64_t address = request.local_address + offset;
  const Region* region = core_.regions.find(request.local_key);
  if (region == nullptr || !region->grants(qp.config.pd, access::local_write, address, bytes)) {
    return MemoryResult::fault;
  }
  if (atomic) {
    std::array<std::byte, kAtomicBytes> value;  // in the host's byte order
    std::memcpy(value.data(), &parsed.ext.atomic_original, value.size());
    return store_bytes(*region, qp.number, address, value);
  }
  const MemoryResult result = store_payload(*region, qp.number, address, bytes,
                                            request.remote_address + offset, packet, mismatch);
  if (mismatch) ++core_.counters.digest_mismatches;
  return result;
}

void RequesterPart::memory_ready(QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (r.response_waits) {
    r.response_waits = false;
    while (!r.parked.empty()) {
      Packet* packet = r.parked.head;
      wire::ParsedPacket parsed;
      const wire::ParseError error =
          wire::parse_brief(packet->header_view(), packet->payload_bytes, {}, parsed);
      if (error == wire::ParseError::ok && qp.state != QpState::error) {
        if (parsed.properties.operation == wire::Operation::acknowledge) {
          on_acknowledge(qp, parsed);
        } else if (parsed.properties.operation == wire::Operation::xack) {
          if (on_xack(qp, parsed, *packet)) on_gap(qp, parsed);
        } else if (take_in(qp, parsed, *packet) == Outcome::pending) {
          r.response_waits = true;
          break;  // still the first of the parked
        }
      } else {
        count_discarded(*packet);
      }
      core_.pool.free(r.parked.pop());
    }
  }
  if ((r.stops & requester_stop::memory) != 0) {
    r.stops &= static_cast<std::uint8_t>(~requester_stop::memory);
    core_.actions.resume(qp);
  }
}

void RequesterPart::discard(QueuePair& qp) {
  for (PacketFifo& parked = qp.requester.parked; !parked.empty(); core_.pool.free(parked.pop())) {
    count_discarded(*parked.head);
  }
  qp.requester.response_waits = false;
}

bool RequesterPart::is_response(const Packet& packet) {
  wire::ParsedPacket parsed;
  if (wire::parse_brief(packet.header_view(), packet.payload_bytes, {}, parsed) !=
      wire::ParseError::ok) {
    return false;
  }
  return parsed.properties.operation == wire::Operation::read_response ||
         parsed.properties.operation == wire::Operation::atomic_acknowledge;
}

RequesterPart::Outcome RequesterPart::take_in(QueuePair& qp, const wire::ParsedPacket& parsed,
                                              const Packet& packet) {
  const std::uint64_t taken = core_.counters.rx_data_packets;
  const bool could_send = can_send(qp.state);
  const Outcome outcome = qp.requester.selective ? accept_selective_response(qp, parsed, packet)
                                                 : accept_response(qp, parsed, packet);
  if (outcome == Outcome::done && core_.counters.rx_data_packets == taken) [[unlikely]] {
    count_untaken(qp, parsed.psn, could_send);
  }
  return outcome;
}

void RequesterPart::count_untaken(const QueuePair& qp, Psn psn, bool could_send) {
  const RequesterState& r = qp.requester;
  telemetry::EngineCounters& c = core_.counters;
  if (!could_send) {
    ++c.wrong_state;
  } else if (!can_send(qp.state)) {
    ++c.dropped_bad_response;
  } else if (before(psn, r.una_psn) || !before(psn, r.max_psn)) {
    ++c.dropped_stale;
  } else if (r.selective) {
    const bool beyond = distance(psn, r.una_psn) >= qp.selective->send.window();
    ++(beyond ? c.dropped_gap : c.dropped_stale);
  } else {
    // Where a READ is not answered up to here, one of its responses is missing.
    ++(r.gap_known ? c.dropped_gap : c.dropped_stale);
  }
}

// Of a packet that was parked; frees nothing. Acknowledgements that waited behind responses are
// counted already.
void RequesterPart::count_discarded(const Packet& packet) {
  if (is_response(packet)) ++core_.counters.wrong_state;
}

}  // namespace paceline::transport
