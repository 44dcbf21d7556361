#include "dataplane/transport/read/read_requester.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/message/ack_progress.h"
#include "dataplane/transport/message/packet_builder.h"
#include "dataplane/transport/message/qp_failure.h"
#include "dataplane/transport/message/request_order.h"
#include "dataplane/transport/message/requester_timer.h"
#include "dataplane/transport/message/scatter_gather.h"
#include "dataplane/transport/message/scoreboard.h"
#include "dataplane/transport/message/send_window.h"

namespace paceline::transport {

// Builds the request packet for the entry at the cursor, for its responses from there on. Under
// selective repeat it asks for as many as are kept (update_window); the rest follows in requests of
// its own.
void ReadRequester::build(EngineCore& core, QueuePair& qp, Packet& packet, const SendEntry& entry) {
  RequesterState& r = qp.requester;
  std::uint32_t count = entry.packets - r.position.packet();
  const Psn first = entry.first_psn + r.position.packet();
  if (r.selective) {
    const std::int32_t room =
        qp.selective->send.window.size() - distance(first, r.position.oldest());
    count = std::min(count, static_cast<std::uint32_t>(room));
  }
  PacketBuilder::build_read(core, qp, packet, entry, r.position.packet(), count);

  // Its answer also acknowledges everything before it.
  r.ack_requests.asked(core.now);
  if (r.position.asked(count, r.position.packet() + count == entry.packets)) {
    core.count_data(qp.peer);
  } else {
    core.count_retransmitted(qp);
  }
  ++r.outstanding_reads;
  RequestOrder::check(qp);
  if (r.inflight_bytes == 0 && !r.selective) RequesterTimer::arm(core, qp);
  r.inflight_bytes += packet.wire_bytes;
  if (r.selective) Scoreboard::note_sent(core, qp, first, packet.wire_bytes, count, true);
}

// The oldest unacknowledged packet is a response that has not come, though a later one has
// (9.7.5.1.1, "implied NAK").
void ReadRequester::answers_lost(EngineCore& core, QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (r.gap_known) return;  // already asked for again; if that is lost, the timer finds out
  r.gap_known = true;
  ++core.counters.implied_naks;
  if (!r.retries.spend()) {
    QpFailure::fail(core, qp, CompletionStatus::retry_exceeded);
    return;
  }
  // This is not a loss of this end's data: the peer's data was lost. The repeated request tells the
  // peer's algorithm.
  SendWindow::rewind(core, qp);
  core.actions.resume_and_report(qp);
}

ResponseOutcome ReadRequester::accept(EngineCore& core, QueuePair& qp,
                                      const wire::ParsedPacket& parsed, const Packet& packet) {
  RequesterState& r = qp.requester;
  if (!can_send(qp.state)) return ResponseOutcome::done;
  const Psn psn = parsed.psn;
  if (before(psn, r.position.oldest()) || !before(psn, r.position.end())) {
    ++core.counters.stale_acks;  // a repeated response, or a ghost
    return ResponseOutcome::done;
  }
  const SendEntry* entry = SendWindow::unanswered_before(qp, psn + 1);
  if (entry == nullptr) {
    ++core.counters.stale_acks;  // names a SEND or WRITE: an answer to nothing that was asked
    return ResponseOutcome::done;
  }
  const Psn expected =
      before(entry->first_psn, r.position.oldest()) ? r.position.oldest() : entry->first_psn;
  if (psn != expected) {
    std::uint64_t acked = 0;
    if (expected != r.position.oldest())
      acked = AckProgress::progress(core, qp, expected);  // all before it was answered
    AckProgress::report_ack(core, qp, acked, 0);
    answers_lost(core, qp);
    return ResponseOutcome::done;
  }
  if (const ResponseTaken taken = take_response(core, qp, *entry, parsed, packet);
      taken != ResponseTaken::yes) {
    return taken == ResponseTaken::pending ? ResponseOutcome::pending : ResponseOutcome::done;
  }
  if (parsed.properties.has_aeth() && parsed.ext.aeth.is_ack())
    RequestOrder::on_credits(core, qp, parsed.ext.aeth);
  r.probe.stop();  // an answer may have waited behind others: it measures nothing
  AckProgress::report_ack(core, qp, AckProgress::progress(core, qp, psn + 1), 0);
  return ResponseOutcome::done;
}

// Checks the response against what `entry` asked for, and places it. Otherwise the queue pair has
// failed, or memory answers later. A run of responses may begin anywhere: the first one after a
// repeated request is a First or an Only. Under selective repeat it may also end anywhere, and the
// peer may have turned to selective repeat before this end.
ResponseTaken ReadRequester::take_response(EngineCore& core, QueuePair& qp, const SendEntry& entry,
                                           const wire::ParsedPacket& parsed, const Packet& packet) {
  const auto index = static_cast<std::uint32_t>(distance(parsed.psn, entry.first_psn));
  const bool last = index + 1 == entry.packets;
  const bool is_read = entry.request.opcode == WorkOpcode::read;
  const bool read_response = parsed.properties.operation == wire::Operation::read_response;
  const bool ends_well =
      core.config.reliability == Reliability::selective || parsed.properties.ends_message() == last;
  if (is_read != read_response ||
      (is_read &&
       (parsed.payload_bytes != SendWindow::payload_of(qp, entry, index) || !ends_well))) {
    QpFailure::fail(core, qp, CompletionStatus::bad_response, parsed.psn);
    return ResponseTaken::failed;
  }
  switch (place_response(core, qp, entry, parsed, packet)) {
    case MemoryResult::done:
      break;
    case MemoryResult::pending:
      return ResponseTaken::pending;
    case MemoryResult::fault:
      QpFailure::fail(core, qp, CompletionStatus::local_protection_error, parsed.psn);
      return ResponseTaken::failed;
  }
  ++core.counters.rx_data_packets;
  core.counters.rx_data_bytes += parsed.payload_bytes;
  qp.counters.rx_bytes += parsed.payload_bytes;
  return ResponseTaken::yes;
}

MemoryResult ReadRequester::place_response(EngineCore& core, QueuePair& qp, const SendEntry& entry,
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
    SegmentAccess into{core.regions, PacketBuilder::segments_of(qp, place)};
    into.segments = into.segments.first(request.segment_count);
    into.pd = qp.config.pd;
    into.qp_number = qp.number;
    into.needed = access::local_write;
    into.offset = offset;
    into.bytes = bytes;
    const MemoryResult scattered =
        scatter_payload(into, request.remote_address + offset, packet, mismatch);
    if (mismatch) ++core.counters.digest_mismatches;
    return scattered;
  }
  const std::uint64_t address = request.local_address + offset;
  const Region* region = core.regions.find(request.local_key);
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
  if (mismatch) ++core.counters.digest_mismatches;
  return result;
}

bool ReadRequester::is_response(const Packet& packet) {
  wire::ParsedPacket parsed;
  if (wire::parse_brief(packet.header_view(), packet.payload_bytes, {}, parsed) !=
      wire::ParseError::ok) {
    return false;
  }
  return parsed.properties.operation == wire::Operation::read_response ||
         parsed.properties.operation == wire::Operation::atomic_acknowledge;
}

void ReadRequester::count_untaken(EngineCore& core, const QueuePair& qp, Psn psn, bool could_send) {
  const RequesterState& r = qp.requester;
  telemetry::EngineCounters& c = core.counters;
  if (!could_send) {
    ++c.wrong_state;
  } else if (!can_send(qp.state)) {
    ++c.dropped_bad_response;
  } else if (before(psn, r.position.oldest()) || !before(psn, r.position.end())) {
    ++c.dropped_stale;
  } else if (r.selective) {
    const bool beyond = distance(psn, r.position.oldest()) >= qp.selective->send.window.size();
    ++(beyond ? c.dropped_gap : c.dropped_stale);
  } else {
    // If a READ is not answered up to here, at least one of its responses is missing.
    ++(r.gap_known ? c.dropped_gap : c.dropped_stale);
  }
}

// For a packet that was parked; frees nothing. Acknowledgements that waited behind responses are
// already counted.
void ReadRequester::count_discarded(EngineCore& core, const Packet& packet) {
  if (is_response(packet)) ++core.counters.wrong_state;
}

}  // namespace paceline::transport
