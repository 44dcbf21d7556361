// The requester under selective repeat: what an XACK says is entered packet by packet, what is
// missing is found by time of sending (after RACK, RFC 8985: a packet is lost when one that was
// sent later has arrived, and more than the tolerated reordering lies between them), and only that
// is sent again (selective_repair.cc). Sequence numbers of READs and atomics are done when their
// response is here, all others when they are acknowledged; requests complete in order.
#include <algorithm>

#include "dataplane/transport/requester.h"
#include "dataplane/transport/scheduler.h"

namespace paceline::transport {

void RequesterPart::begin_selective(QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (qp.selective == nullptr || r.selective || !r.queue.empty() || !can_send(qp.state)) return;
  r.selective = true;
  r.probe_active = false;
  reset_selective(qp);
}

// Nothing is under way: all marks at the next sequence number.
void RequesterPart::reset_selective(QueuePair& qp) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  std::fill(s.sent.begin(), s.sent.end(), SentPacket{});
  s.asks.clear();
  s.peer_expected = s.highest = s.lost_from = s.flying_from = s.responses_to = r.una_psn;
  s.lost = 0;
  s.ask_bytes = 0;
  s.probes = 0;
  s.failing = false;
  s.newest_sent = Picos{-1};
  s.progress_at = core_.now;
  s.reorder_at = s.response_at = kNever;
  r.repair = false;
  r.timeout_at = kNever;
}

void RequesterPart::note_sent(QueuePair& qp, Psn psn, std::uint32_t wire_bytes,
                              std::uint32_t extent, bool request) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  SentPacket& sent = s.at(psn);
  const bool before_now = sent.has(sent_flag::again);
  sent.sent_at = core_.now;
  sent.wire_bytes = wire_bytes;
  sent.extent = extent;
  sent.port = qp.selective->paths.last_port();
  sent.flags = sent_flag::in_flight;
  if (request) sent.set(sent_flag::request);
  if (before_now) sent.set(sent_flag::again);
  if (before(psn, s.flying_from)) s.flying_from = psn;
  update_window(qp);
  if (r.timeout_at == kNever) {
    s.progress_at = core_.now;
    arm_selective(qp);
  }
}

// As many sequence numbers as are kept: the next packet waits for the oldest.
void RequesterPart::update_window(QueuePair& qp) {
  RequesterState& r = qp.requester;
  const bool full = distance(r.next_psn, r.una_psn) >= qp.selective->send.window();
  r.stops = static_cast<std::uint8_t>(full ? r.stops | requester_stop::window
                                           : r.stops & ~requester_stop::window);
}

// Whether there is something to repair; what is done needs none.
void RequesterPart::update_repair(QueuePair& qp) {
  SelectiveSend& s = qp.selective->send;
  while (!s.asks.empty() && before(s.asks.front().first, qp.requester.una_psn)) s.asks.pop();
  qp.requester.repair = s.lost != 0 || !s.asks.empty();
}

void RequesterPart::forget_flight(QueuePair& qp, SentPacket& sent) {
  sent.clear(sent_flag::in_flight);
  qp.requester.inflight_bytes -= sent.wire_bytes;
  core_.contexts[qp.context].inflight_bytes -= sent.wire_bytes;
}

// The packet has arrived. Returns its bytes on the wire when that is news.
std::uint32_t RequesterPart::mark_delivered(QueuePair& qp, SentPacket& sent) {
  SelectiveSend& s = qp.selective->send;
  if (!sent.has(sent_flag::in_flight | sent_flag::lost)) return 0;
  const Picos least = picos_from_nanos(s.min_rtt_ns);
  // Of one that was sent twice, and is acknowledged sooner than a round trip after the second time,
  // the first has arrived.
  const bool known = !sent.has(sent_flag::again) || core_.now - sent.sent_at >= least;
  if (sent.has(sent_flag::in_flight)) {
    forget_flight(qp, sent);
    if (known) s.newest_sent = later(s.newest_sent, sent.sent_at);
  } else {
    --s.lost;
    sent.clear(sent_flag::lost);
    if (!sent.has(sent_flag::request)) {
      qp.requester.backlog_bytes -= sent.extent;
      core_.contexts[qp.context].backlog_bytes -= sent.extent;
    }
  }
  if (!sent.has(sent_flag::request)) sent.set(sent_flag::delivered);
  return sent.wire_bytes;
}

// The packet, in flight or thought to have arrived, is to be sent again.
void RequesterPart::unsend(QueuePair& qp, Psn psn) {
  SelectiveSend& s = qp.selective->send;
  SentPacket& sent = s.at(psn);
  if (sent.has(sent_flag::lost)) return;
  if (sent.has(sent_flag::in_flight)) forget_flight(qp, sent);
  sent.clear(sent_flag::delivered);
  sent.set(sent_flag::lost | sent_flag::again);
  if (!sent.has(sent_flag::request)) {
    qp.requester.backlog_bytes += sent.extent;
    core_.contexts[qp.context].backlog_bytes += sent.extent;
  }
  if (s.lost++ == 0 || before(psn, s.lost_from)) s.lost_from = psn;
  qp.requester.repair = true;
}

void RequesterPart::mark_lost(QueuePair& qp, Psn psn) {
  ++core_.counters.lost_packets;
  qp.selective->paths.lost(qp.selective->send.at(psn).port);
  unsend(qp, psn);
}

// How much later than others a packet may arrive before it counts as lost.
Picos RequesterPart::reorder_wait(const SelectiveSend& s) {
  return picos_from_nanos(s.min_rtt_ns) / 4 * s.reorder_steps;
}

// Marks what must have been lost; returns its bytes on the wire.
std::uint64_t RequesterPart::find_lost(QueuePair& qp) {
  const RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  const Picos wait = reorder_wait(s);
  const Picos round_trip = picos_from_nanos(s.srtt_ns);
  std::uint64_t lost = 0;
  s.reorder_at = kNever;
  if (before(s.flying_from, r.una_psn)) s.flying_from = r.una_psn;
  const Psn end = distance(s.highest, r.una_psn) > s.window()
                      ? r.una_psn + static_cast<std::uint32_t>(s.window())
                      : s.highest;
  bool none_before = true;
  for (Psn psn = s.flying_from; before(psn, end); ++psn) {
    const SentPacket& sent = s.at(psn);
    if (!sent.has(sent_flag::in_flight)) {
      if (none_before) s.flying_from = psn + 1;
      continue;
    }
    none_before = false;
    if (sent.sent_at >= s.newest_sent) continue;
    const Picos due = sent.sent_at + round_trip + wait;
    if (sent.sent_at + wait < s.newest_sent || due <= core_.now) {
      lost += sent.wire_bytes;
      mark_lost(qp, psn);
    } else {
      s.reorder_at = earlier(s.reorder_at, due);
    }
  }
  return lost;
}

// What is done from the oldest on leaves. True when something did. A bit of an XACK is not the last
// word: a packet that was held may be put off when its turn comes (RNR).
bool RequesterPart::advance_selective(QueuePair& qp) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  const Psn from = r.una_psn;
  while (before(r.una_psn, s.peer_expected) && s.at(r.una_psn).has(sent_flag::delivered)) {
    s.at(r.una_psn) = SentPacket{};
    ++r.una_psn;
  }
  if (r.una_psn == from) return false;
  for (Psn* mark : {&s.peer_expected, &s.highest, &s.lost_from, &s.flying_from, &s.responses_to}) {
    if (before(*mark, r.una_psn)) *mark = r.una_psn;
  }
  complete_before(qp, r.una_psn);
  r.retries_left = qp.config.retry_count;
  r.rnr_left = qp.config.rnr_retry;
  update_window(qp);
  if (r.ordered != 0) {
    check_order(qp);
    check_drained(qp);
  }
  return true;
}

void RequesterPart::on_xack(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet) {
  if (!can_send(qp.state)) return;
  wire::Xack xack;
  const wire::ParseError error =
      wire::parse_xack(wire::xack_body(packet.header_view(), parsed), xack);
  if (error != wire::ParseError::ok) {
    core_.count_malformed(error);
    return;
  }
  if (qp.requester.selective) {
    take_xack(qp, parsed.psn, xack);
  } else {
    take_as_acknowledge(qp, parsed, xack);
  }
}

// Under go-back-N: what it says of the expected packet, and that there is a gap.
void RequesterPart::take_as_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed,
                                        const wire::Xack& xack) {
  wire::ParsedPacket plain = parsed;
  plain.ext.aeth = xack.aeth;
  if (xack.aeth.is_ack()) plain.psn = parsed.psn - 1;
  on_acknowledge(qp, plain);
  if (!xack.aeth.is_ack() || (xack.bitmap[0] | xack.bitmap[1]) == 0) return;
  plain.psn = parsed.psn;
  plain.ext.aeth = wire::Aeth::nak(xack.aeth.msn, wire::NakCode::psn_sequence_error);
  on_acknowledge(qp, plain);
}

// A plain ACK or NAK: from a peer that does not know yet that we speak XACK.
void RequesterPart::take_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed) {
  const RequesterState& r = qp.requester;
  wire::Xack xack;
  xack.aeth = parsed.ext.aeth;
  xack.trigger = r.una_psn - 1;
  const bool is_ack = xack.aeth.is_ack();
  const Psn expected = is_ack ? parsed.psn + 1 : parsed.psn;
  const bool gap = xack.aeth.kind() == wire::AethKind::nak &&
                   xack.aeth.nak_code() == wire::NakCode::psn_sequence_error;
  if (gap) {
    xack.aeth = wire::Aeth::ack(xack.aeth.msn);
    ++core_.counters.naks_received;
    // It has dropped everything from there on.
    SelectiveSend& s = qp.selective->send;
    const Psn from = before(expected, r.una_psn) ? r.una_psn : expected;
    for (Psn psn = from; before(psn, r.next_psn) && distance(psn, r.una_psn) < s.window(); ++psn) {
      if (s.at(psn).has(sent_flag::in_flight)) mark_lost(qp, psn);
    }
  }
  take_xack(qp, expected, xack);
}

// The peer has taken in everything before `expected`. Returns the bytes on the wire that are news.
std::uint64_t RequesterPart::acknowledge_before(QueuePair& qp, Psn expected) {
  const RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  std::uint64_t acked = 0;
  Psn psn = before(s.peer_expected, r.una_psn) ? r.una_psn : s.peer_expected;
  while (before(psn, expected) && distance(psn, r.una_psn) < s.window()) {
    SentPacket& sent = s.at(psn);
    acked += mark_delivered(qp, sent);
    psn = psn + (sent.has(sent_flag::request) ? sent.extent : 1);
  }
  if (before(s.peer_expected, expected)) s.peer_expected = expected;
  if (before(s.highest, expected)) s.highest = expected;
  return acked;
}

void RequesterPart::take_xack(QueuePair& qp, Psn expected, const wire::Xack& xack) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (before(r.max_psn, expected) || distance(r.una_psn, expected) > s.window()) {
    ++core_.counters.stale_acks;
    return;
  }
  PathSet& paths = qp.selective->paths;
  if (xack.marked) paths.marked(xack.marked_port);
  const auto kept = [&](Psn psn) {
    return !before(psn, r.una_psn) && before(psn, r.next_psn) &&
           distance(psn, r.una_psn) < s.window();
  };

  std::uint32_t rtt_ns = 0;
  if (kept(xack.trigger)) {
    const SentPacket& sent = s.at(xack.trigger);
    if (sent.has(sent_flag::in_flight) && !sent.has(sent_flag::again)) {
      rtt_ns = static_cast<std::uint32_t>((core_.now - sent.sent_at).count / 1000);
      const std::uint32_t hold = xack.hold_ns;
      if (rtt_ns > hold) rtt_ns -= hold;
      s.min_rtt_ns = s.min_rtt_ns == 0 ? rtt_ns : std::min(s.min_rtt_ns, rtt_ns);
      s.srtt_ns = s.srtt_ns == 0 ? rtt_ns : s.srtt_ns - s.srtt_ns / 8 + rtt_ns / 8;
      // Slower than the others by more than a quarter of an empty path: a queue of its own.
      if (rtt_ns > s.srtt_ns + s.min_rtt_ns / 4) paths.marked(sent.port);
    }
  }
  // Sent again for nothing: more reordering than was thought. It is forgotten slowly.
  if (xack.duplicate) {
    s.reorder_steps = static_cast<std::uint8_t>(std::min(s.reorder_steps + 4, 64));
    s.calm = 0;
  }

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
  if (acked != 0 || advanced) {
    s.probes = 0;
    s.progress_at = core_.now;
  }
  const std::uint64_t lost = find_lost(qp);
  update_repair(qp);
  if (lost != 0) {
    if (++s.calm == 64) {
      s.calm = 0;
      if (s.reorder_steps > 1) --s.reorder_steps;
    }
    cc::Event event;
    event.signal = cc::Signal::nack;
    event.lost_bytes = static_cast<std::uint32_t>(lost);
    event.acked_bytes = static_cast<std::uint32_t>(acked);
    scheduler_.settle(qp);
    scheduler_.deliver(qp.context, event);
  } else {
    scheduler_.settle(qp);
    report_ack(qp, acked, rtt_ns);
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
  if (!before(expected, r.next_psn) || distance(expected, r.una_psn) >= s.window()) return;
  if (s.at(expected).flags == 0 || s.at(expected).has(sent_flag::lost)) return;
  if (r.rnr_left == 0) {
    fail(qp, CompletionStatus::rnr_retry_exceeded, expected);
    return;
  }
  if (qp.config.rnr_retry != 7) --r.rnr_left;  // 7: for ever
  unsend(qp, expected);                        // even if it was held there for a while
  r.blocked_until = core_.now + wire::rnr_timer(aeth.value());
  s.progress_at = r.blocked_until;
  scheduler_.settle(qp);
  if (core_.contexts[qp.context].place == ContextPlace::blocked) scheduler_.refresh(qp.context);
  arm_selective(qp);
}

}  // namespace paceline::transport
