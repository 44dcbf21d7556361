// Selective repeat: the sender's window, packet by packet. Sent, delivered, lost; what must have
// been lost is found by time of sending (after RACK, RFC 8985: a packet is lost when one that was
// sent later has arrived, and more than the tolerated reordering lies between them). Sequence
// numbers of READs and atomics are done when their response is here, all others when they are
// acknowledged; requests complete in order.
#include <algorithm>

#include "dataplane/transport/requester.h"

namespace paceline::transport {

void RequesterPart::begin_selective(QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (qp.selective == nullptr || r.selective || !r.queue.empty() || !can_send(qp.state)) return;
  if (!r.peer_selective) return;
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
  s.lost = s.missing = 0;
  s.ask_bytes = 0;
  s.probes = 0;
  s.patience = s.held = 0;
  s.failing = false;
  s.newest_sent = s.newest_ask = Picos{-1};
  s.progress_at = core_.awake();
  s.reorder_at = s.response_at = kNever;
  r.repair = false;
  r.timeout_at = kNever;
}

// Switches shall say what they are like, if that comes back and somebody listens.
void RequesterPart::want_telemetry(const QueuePair& qp, Packet& packet) {
  if ((core_.contexts[qp.context].wants & cc::kWantsTelemetry) == 0) return;
  if (qp.peer == kNoIndex || !core_.peers[qp.peer].telemetry) return;
  packet.flags = static_cast<std::uint8_t>(packet.flags | packet_flag::telemetry);
  packet.records = 0;
  packet.path = 0;
  packet.wire_bytes += wire::kIntHeaderBytes;
  core_.counters.tx_wire_bytes += wire::kIntHeaderBytes;
}

void RequesterPart::note_sent(QueuePair& qp, Psn psn, std::uint32_t wire_bytes,
                              std::uint32_t extent, bool request) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  SentPacket& sent = s.at(psn);
  sent.sent_at = core_.now;
  sent.wire_bytes = wire_bytes;
  sent.extent = extent;
  sent.port = qp.selective->paths.last_port();
  sent.clear(sent_flag::lost);
  sent.set(sent_flag::in_flight);
  if (request) {
    sent.set(sent_flag::request);
    s.at(psn + (extent - 1)).set(sent_flag::ends);
  }
  if (before(psn, s.flying_from)) s.flying_from = psn;
  update_window(qp);
  if (r.timeout_at == kNever) {
    s.progress_at = core_.awake();
    arm_selective(qp);
  }
}

// As many sequence numbers as are kept: the next packet waits for the oldest. A READ takes as many
// as it has responses, and asks for an eighth of the window, or for its rest, at the least.
void RequesterPart::update_window(QueuePair& qp) {
  RequesterState& r = qp.requester;
  const std::int32_t window = qp.selective->send.window();
  std::int32_t needed = 1;
  if (r.ordered != 0 && r.cursor != r.queue.tail()) {
    const SendEntry& entry = r.queue.at(r.cursor);
    if (entry.answered) {
      needed = std::min(static_cast<std::int32_t>(entry.packets - r.cursor_packet), window / 8);
    }
  }
  const bool full = distance(r.next_psn, r.una_psn) > window - needed;
  r.stops = static_cast<std::uint8_t>(full ? r.stops | requester_stop::window
                                           : r.stops & ~requester_stop::window);
}

// Whether there is something to repair; what is done needs none. Holds after every change of what
// is lost, asked for or done: the scheduler may ask for the length of the next packet at any time.
void RequesterPart::update_repair(QueuePair& qp) {
  SelectiveSend& s = qp.selective->send;
  while (!s.asks.empty()) {
    ResponseAsk& wanted = s.asks.front();
    const std::int32_t here = distance(qp.requester.una_psn, wanted.first);
    if (here <= 0) break;
    if (here < static_cast<std::int32_t>(wanted.count)) {
      wanted.first = qp.requester.una_psn;
      wanted.count -= static_cast<std::uint32_t>(here);
      break;
    }
    s.asks.pop();
  }
  qp.requester.repair = s.lost != 0 || !s.asks.empty();
}

// For tests: counted packet by packet.
bool RequesterPart::repair_adds_up(const QueuePair& qp) {
  const RequesterState& r = qp.requester;
  if (!r.selective) return !r.repair;
  const SelectiveSend& s = qp.selective->send;
  const auto lost = std::count_if(s.sent.begin(), s.sent.end(),
                                  [](const SentPacket& p) { return p.has(sent_flag::lost); });
  const auto missing = std::count_if(s.sent.begin(), s.sent.end(), [](const SentPacket& p) {
    return p.has(sent_flag::late) && !p.has(sent_flag::delivered);
  });
  return lost == s.lost && missing == s.missing && r.repair == (s.lost != 0 || !s.asks.empty());
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
    update_repair(qp);
  }
  if (!sent.has(sent_flag::request)) sent.set(sent_flag::delivered);
  return sent.wire_bytes;
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
  const Psn end = s.within_window(r.una_psn, s.highest);
  bool none_before = true;
  for (Psn psn = s.flying_from; before(psn, end); ++psn) {
    const SentPacket& sent = s.at(psn);
    if (!sent.has(sent_flag::in_flight)) {
      if (none_before) s.flying_from = psn + 1;
      continue;
    }
    none_before = false;
    if (sent.sent_at >= s.newest_sent) continue;
    // What tells of its arrival may have come while the host stood still, and be the next to be
    // read.
    const Picos from = core_.spans_stop(sent.sent_at) ? core_.stops.until : sent.sent_at;
    const Picos due = from + round_trip + wait;
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
    if (s.at(r.una_psn).has(sent_flag::ends)) --r.answers_due;
    s.at(r.una_psn) = SentPacket{};
    ++r.una_psn;
  }
  if (r.una_psn == from) return false;
  for (Psn* mark : {&s.peer_expected, &s.highest, &s.lost_from, &s.flying_from, &s.responses_to}) {
    if (before(*mark, r.una_psn)) *mark = r.una_psn;
  }
  update_repair(qp);
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

}  // namespace paceline::transport
