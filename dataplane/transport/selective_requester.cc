// The requester under selective repeat: what an XACK says is entered packet by packet
// (selective_window.cc), and what is missing, and only that, is sent again (selective_repair.cc).
#include <algorithm>
#include <bit>

#include "dataplane/transport/requester.h"

namespace paceline::transport {

namespace {

// What the trigger has collected on its way, in `stack`; nullptr: nothing.
const IntStack* records_of(const wire::Xack& xack, IntStack& stack) {
  if (xack.records.empty()) [[likely]]
    return nullptr;
  stack.hops = static_cast<std::uint16_t>(xack.records.size() / wire::kIntRecordBytes);
  stack.path = xack.path;
  for (std::size_t i = 0; i < stack.hops; ++i) {
    stack.hop[i] = wire::load_int_record(xack.records.data() + i * wire::kIntRecordBytes);
  }
  return &stack;
}

}  // namespace

bool RequesterPart::on_xack(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet) {
  if (!can_send(qp.state)) return false;
  wire::Xack xack;
  const wire::ParseError error =
      wire::parse_xack(wire::xack_body(packet.header_view(), parsed), xack);
  if (error != wire::ParseError::ok) {
    core_.count_malformed(error);
    return false;
  }
  if (!xack.aeth.is_ack() && take_goodbye(qp, xack.aeth, parsed.psn)) return false;
  qp.requester.peer_selective = true;
  if (!qp.requester.selective) return take_as_acknowledge(qp, parsed, xack);
  take_xack(qp, parsed.psn, xack);
  return false;
}

// Under go-back-N: what it says of the expected packet. True: and that there is a gap.
bool RequesterPart::take_as_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed,
                                        const wire::Xack& xack) {
  wire::ParsedPacket plain = parsed;
  plain.ext.aeth = xack.aeth;
  if (xack.aeth.is_ack()) plain.psn = parsed.psn - 1;
  on_acknowledge(qp, plain);
  if (!xack.aeth.is_ack() || (xack.bitmap[0] | xack.bitmap[1]) == 0) return false;
  // Every packet behind the gap brings one of these: the first counts.
  return !qp.requester.gap_known;
}

void RequesterPart::on_gap(QueuePair& qp, const wire::ParsedPacket& parsed) {
  qp.requester.gap_known = true;
  wire::ParsedPacket plain = parsed;
  plain.ext.aeth = wire::Aeth::nak(0, wire::NakCode::psn_sequence_error);
  on_acknowledge(qp, plain);
}

// A plain ACK or NAK: from a peer that does not know yet that we speak XACK.
void RequesterPart::take_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed) {
  const RequesterState& r = qp.requester;
  wire::Xack xack;
  xack.aeth = parsed.ext.aeth;
  xack.trigger = r.una_psn - 1;
  xack.marked_bytes = qp.selective->send.marked_bytes;  // it says nothing of marks
  const bool is_ack = xack.aeth.is_ack();
  const Psn expected = is_ack ? parsed.psn + 1 : parsed.psn;
  const bool gap = xack.aeth.kind() == wire::AethKind::nak &&
                   xack.aeth.nak_code() == wire::NakCode::psn_sequence_error;
  if (gap) {
    xack.aeth = wire::Aeth::ack(xack.aeth.msn);
    ++core_.counters.naks_received;
    ++qp.counters.naks_received;
    // It has dropped everything from there on.
    SelectiveSend& s = qp.selective->send;
    const Psn from = before(expected, r.una_psn) ? r.una_psn : expected;
    for (Psn psn = from; before(psn, r.next_psn) && distance(psn, r.una_psn) < s.window(); ++psn) {
      if (s.at(psn).has(sent_flag::in_flight)) mark_lost(qp, psn);
    }
  }
  take_xack(qp, expected, xack);
}

void RequesterPart::take_xack(QueuePair& qp, Psn expected, const wire::Xack& xack) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (before(r.max_psn, expected) || distance(r.una_psn, expected) > s.window()) {
    ++core_.counters.stale_acks;
    return;
  }
  PathSet& paths = qp.selective->paths;
  if (!xack.duplicate && !xack.trimmed) paths.arrived(xack.trigger_port);
  if (xack.marked) paths.marked(xack.marked_port);
  const auto kept = [&](Psn psn) {
    return !before(psn, r.una_psn) && before(psn, r.next_psn) &&
           distance(psn, r.una_psn) < s.window();
  };

  // What was trimmed has passed the queue that it was trimmed at: its round trip says nothing.
  std::uint32_t rtt_ns = 0;
  if (kept(xack.trigger) && !xack.trimmed) {
    const SentPacket& sent = s.at(xack.trigger);
    if (sent.has(sent_flag::in_flight) && !sent.has(sent_flag::again)) {
      rtt_ns = sample_rtt(sent.sent_at);
    }
    if (rtt_ns != 0) {
      const std::uint32_t hold = xack.hold_ns;
      if (rtt_ns > hold) rtt_ns -= hold;
      s.min_rtt_ns = s.min_rtt_ns == 0 ? rtt_ns : std::min(s.min_rtt_ns, rtt_ns);
      s.last_rtt_ns = rtt_ns;
      s.srtt_ns = s.srtt_ns == 0 ? rtt_ns : s.srtt_ns - s.srtt_ns / 8 + rtt_ns / 8;
      // Round trips are measured again: no reason to go on doubting them.
      if (s.patience != 0 && ++s.samples == 8) {
        --s.patience;
        s.samples = 0;
      }
      // Slower than the others by more than a quarter of an empty path: a queue of its own.
      if (rtt_ns > s.srtt_ns + s.min_rtt_ns / 4) paths.marked(sent.port);
    }
  }
  // Sent again for nothing: more reordering than was thought, or round trips that have become
  // longer. What was sent twice measures none (Karn), so without patience a queue that grows faster
  // than they are measured would have every packet of a small window probed, and never be measured.
  // Both are forgotten slowly.
  if (xack.duplicate) s.doubt();

  std::uint64_t acked = 0;
  acked += acknowledge_before(qp, expected);
  const Psn first = expected + 1 + xack.bitmap_offset;
  for (unsigned word = 0; word < xack.bitmap.size(); ++word) {
    for (std::uint64_t bits = xack.bitmap[word]; bits != 0; bits &= bits - 1) {
      const Psn psn = first + (word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
      if (!kept(psn)) continue;
      acked += mark_delivered(qp, s.at(psn));
      if (before(s.highest, psn + 1)) s.highest = psn + 1;
    }
  }
  if (xack.aeth.is_ack()) take_credits(qp, xack.aeth);
  const bool advanced = advance_selective(qp);
  if (before(r.una_psn, s.peer_expected)) note_atomic(qp);
  if (acked != 0 || advanced) {
    s.probes = s.held = 0;
    s.progress_at = core_.awake();
  }
  const std::uint64_t trimmed = xack.trimmed ? take_trim(qp, xack.trigger) : 0;
  const std::uint64_t lost = trimmed + find_lost(qp);
  const std::uint32_t marked = s.newly_marked(xack.marked_bytes, acked);
  IntStack stack;
  const IntStack* const int_stack = records_of(xack, stack);
  if (lost != 0) {
    s.believe();
    core_.actions.settle(qp);
    cc::Event& event = core_.actions.deliver(qp.context, int_stack);
    event.signal = cc::Signal::nack;
    event.lost_bytes = static_cast<std::uint32_t>(lost);
    event.acked_bytes = static_cast<std::uint32_t>(acked);
    event.marked_bytes = marked;
    event.trimmed_bytes = static_cast<std::uint32_t>(trimmed);
  } else {
    // What was to be sent again may have arrived after all.
    core_.actions.settle_or_idle(qp);
    report_ack(qp, acked, rtt_ns, marked, rtt_ns == 0 ? 0 : xack.hold_ns, int_stack);
  }
  arm_selective(qp);
  if (!xack.aeth.is_ack()) {
    refused(qp, expected, xack.aeth);
  } else if (s.failing && r.una_psn == s.failing_psn) {
    fail(qp, s.failing_status, s.failing_psn);
  }
}

// The expected packet was put off, or refused.
void RequesterPart::refused(QueuePair& qp, Psn expected, wire::Aeth aeth) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (before(expected, s.peer_expected)) return;  // told before what has come since
  if (aeth.kind() == wire::AethKind::rnr_nak) {
    put_off(qp, expected, aeth);
    return;
  }
  ++core_.counters.error_naks_received;
  CompletionStatus status = CompletionStatus::remote_invalid_request;
  if (aeth.nak_code() == wire::NakCode::remote_access_error) {
    status = CompletionStatus::remote_access_error;
  } else if (aeth.nak_code() == wire::NakCode::remote_operational_error) {
    status = CompletionStatus::remote_operational_error;
  }
  if (expected == r.una_psn) {
    fail(qp, status, expected);
    return;
  }
  // READs before it may still complete.
  s.failing = true;
  s.failing_psn = expected;
  s.failing_status = status;
}

void RequesterPart::put_off(QueuePair& qp, Psn expected, wire::Aeth aeth) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  ++core_.counters.rnr_received;
  ++qp.counters.rnr_received;
  if (!before(expected, r.next_psn) || distance(expected, r.una_psn) >= s.window()) return;
  if (s.at(expected).flags == 0 || s.at(expected).has(sent_flag::lost)) return;
  if (r.rnr_left == 0) {
    fail(qp, CompletionStatus::rnr_retry_exceeded, expected);
    return;
  }
  if (qp.config.rnr_retry != 7) --r.rnr_left;  // 7: for ever
  unsend(qp, expected);                        // even if it was held there for a while
  r.blocked_until = core_.now + wire::rnr_timer(aeth.value());
  s.progress_at = core_.awake() + (r.blocked_until - core_.now);
  core_.actions.settle(qp);
  core_.actions.released(qp.context);
  arm_selective(qp);
}

}  // namespace paceline::transport
