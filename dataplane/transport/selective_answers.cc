// Selective repeat: answers to READs and atomics. The peer sends them once, in the order of their
// sequence numbers, and nothing tells it what has come; here it is known which are missing. An
// answer is late when one with a higher number is here, lost when it has been late for longer than
// the tolerated reordering, and then asked for, range by range, by READ requests of their own. What
// was asked for is lost once more when something that was asked for later is here, or when it has
// taken twice as long as such answers take (after RFC 8985, as selective_window.cc does with
// packets). An atomic is repeated as a request: the peer keeps its result.
#include <algorithm>

#include "dataplane/transport/requester.h"

namespace paceline::transport {

namespace {
// Where the requests to be sent for answers have no room: when to look again.
constexpr Picos kRetryAsking = picos_from_micros(1);
// What answers that came twice can raise SelectiveSend::patience to: a request that was repeated
// for nothing brings all of its answers twice, and fewer round trips are measured than with WRITEs.
constexpr std::uint8_t kMostPatience = 3;

// One past the last sequence number of the request that `psn` belongs to.
Psn end_of_request(SelectiveSend& s, Psn psn) {
  while (!s.at(psn).has(sent_flag::ends)) ++psn;
  return psn + 1;
}
}  // namespace

// The request is in flight until something answers: no sequence number is its own.
bool RequesterPart::build_ask(QueuePair& qp, Packet& packet) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  const ResponseAsk wanted = s.asks.front();
  s.asks.pop();
  update_repair(qp);
  const SendEntry& entry = r.queue.at(position_of(qp, wanted.first));
  build_read(qp, packet, entry, static_cast<std::uint32_t>(distance(wanted.first, entry.first_psn)),
             wanted.count);
  for (std::uint32_t i = 0; i < wanted.count; ++i) s.at(wanted.first + i).sent_at = core_.now;
  core_.count_retransmitted(qp);
  r.since_ack_request = 0;
  r.ack_requested_at = core_.now;
  r.inflight_bytes += packet.wire_bytes;
  s.ask_bytes += packet.wire_bytes;
  if (r.timeout_at == kNever) arm_selective(qp);
  return true;
}

void RequesterPart::forget_asks(QueuePair& qp) {
  SelectiveSend& s = qp.selective->send;
  qp.requester.inflight_bytes -= s.ask_bytes;
  core_.contexts[qp.context].inflight_bytes -= s.ask_bytes;
  s.ask_bytes = 0;
}

// The answer `psn`, which is not here, shall come again; its request has been accepted. False when
// there is no room for that now.
bool RequesterPart::ask(QueuePair& qp, Psn psn) {
  SelectiveSend& s = qp.selective->send;
  SentPacket& answer = s.at(psn);
  const SendEntry& entry = qp.requester.queue.at(position_of(qp, psn));
  if (is_atomic(entry.request.opcode)) {
    unsend(qp, psn);
    return true;
  }
  ResponseAsk* const last = s.asks.empty() ? nullptr : &s.asks.at(s.asks.tail() - 1);
  const bool follows = last != nullptr && last->first + last->count == psn &&
                       !before(last->first, qp.requester.una_psn) &&
                       !s.at(psn - 1).has(sent_flag::ends);
  if (follows) {
    ++last->count;
  } else {
    if (s.asks.full()) return false;
    s.asks.push({psn, 1});
  }
  if (answer.has(sent_flag::asked)) answer.set(sent_flag::again);
  answer.set(sent_flag::asked);
  answer.sent_at = core_.now;
  qp.requester.repair = true;
  return true;
}

// A READ response or an atomic acknowledgement, in any order.
RequesterPart::Outcome RequesterPart::accept_selective_response(QueuePair& qp,
                                                                const wire::ParsedPacket& parsed,
                                                                const Packet& packet) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (!can_send(qp.state)) return Outcome::done;
  const Psn psn = parsed.psn;
  if (before(psn, r.una_psn) || !before(psn, r.max_psn)) {
    ++core_.counters.stale_acks;
    note_repeated(qp);
    return Outcome::done;
  }
  if (distance(psn, r.una_psn) >= s.window()) {
    ++core_.counters.beyond_window;  // of nothing that was asked for
    return Outcome::done;
  }
  const std::uint32_t position = position_of(qp, psn);
  const SendEntry& entry = r.queue.at(position);
  if (position == r.queue.tail() || !entry.answered || s.at(psn).has(sent_flag::delivered)) {
    ++core_.counters.stale_acks;
    note_repeated(qp);
    return Outcome::done;
  }
  if (const Taken taken = take_response(qp, entry, parsed, packet); taken != Taken::yes) {
    return taken == Taken::pending ? Outcome::pending : Outcome::done;
  }
  // The request, and all before it, was accepted: or there would be no answer. An atomic may have
  // been sent again after that.
  std::uint64_t acked = 0;
  if (!before(psn, s.peer_expected)) acked = acknowledge_before(qp, end_of_request(s, psn));
  if (s.at(psn).has(sent_flag::request)) acked += mark_delivered(qp, s.at(psn));
  const Picos newest_ask = s.newest_ask;
  note_answer(qp, psn);
  forget_asks(qp);
  note_late(qp, psn);
  if (before(s.responses_to, psn + 1)) s.responses_to = psn + 1;
  if (parsed.properties.has_aeth() && parsed.ext.aeth.is_ack()) take_credits(qp, parsed.ext.aeth);
  advance_selective(qp);
  if (before(r.una_psn, s.peer_expected)) note_atomic(qp);
  s.probes = s.held = 0;
  s.progress_at = core_.awake();
  bool asks = false;
  if (s.missing == 0) {
    s.response_at = kNever;
  } else if (s.response_at <= core_.now || s.newest_ask != newest_ask) {
    asks = ask_missing(qp);
  }
  core_.actions.settle_or_idle(qp);
  if (asks) core_.actions.resume_announced(qp);
  report_ack(qp, acked, 0);
  arm_selective(qp);
  if (s.failing && r.una_psn == s.failing_psn) fail(qp, s.failing_status, s.failing_psn);
  return Outcome::done;
}

// The answer is here. What came sooner than a round trip after asking is the one that was thought
// lost, and says nothing of the time that answers take; nor does what was asked for twice.
void RequesterPart::note_answer(QueuePair& qp, Psn psn) {
  SelectiveSend& s = qp.selective->send;
  SentPacket& answer = s.at(psn);
  if (answer.has(sent_flag::late)) --s.missing;
  answer.set(sent_flag::delivered);
  if (!answer.has(sent_flag::asked)) return;
  if (core_.now - answer.sent_at < picos_from_nanos(s.min_rtt_ns)) return;
  s.newest_ask = later(s.newest_ask, answer.sent_at);
  const std::uint32_t rtt_ns = answer.has(sent_flag::again) ? 0 : sample_rtt(answer.sent_at);
  if (rtt_ns == 0) return;
  const std::uint32_t known = s.answer_rtt_ns;
  s.answer_rtt_ns = known == 0 ? rtt_ns : known - known / 8 + rtt_ns / 8;
  if (s.patience != 0 && ++s.samples == 8) {
    --s.patience;
    s.samples = 0;
  }
}

// An answer came twice: asked for again for nothing, or more reordering than was thought. It counts
// once per round trip, since whole ranges are asked for at a time.
void RequesterPart::note_repeated(QueuePair& qp) {
  SelectiveSend& s = qp.selective->send;
  if (s.doubted_at + picos_from_nanos(std::max(s.srtt_ns, s.answer_rtt_ns)) > core_.now) return;
  s.doubted_at = core_.now;
  const std::uint8_t patience = s.patience;
  s.doubt();
  s.patience = std::max(patience, std::min(s.patience, kMostPatience));
}

// Answers before `end`, one that is here, have not come.
void RequesterPart::note_late(QueuePair& qp, Psn end) {
  SelectiveSend& s = qp.selective->send;
  if (!before(s.responses_to, end)) return;
  const std::uint32_t missing = s.missing;
  Psn psn = before(s.responses_to, qp.requester.una_psn) ? qp.requester.una_psn : s.responses_to;
  for (; before(psn, end); ++psn) {
    SentPacket& answer = s.at(psn);
    if (answer.has(sent_flag::delivered | sent_flag::late)) continue;
    answer.set(sent_flag::late);
    ++s.missing;
    if (!answer.has(sent_flag::asked | sent_flag::in_flight)) answer.sent_at = core_.now;
  }
  if (s.missing != missing) s.response_at = earlier(s.response_at, core_.now + reorder_wait(s));
}

// The result of an atomic that nothing is missing before was sent with its XACK at the latest.
void RequesterPart::note_atomic(QueuePair& qp) {
  const RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (!is_atomic(r.queue.front().request.opcode) || before(r.una_psn, s.responses_to)) return;
  if (s.at(r.una_psn).has(sent_flag::in_flight | sent_flag::lost)) return;
  const Picos known = s.response_at;
  note_late(qp, r.una_psn + 1);
  s.responses_to = r.una_psn + 1;
  // It may have left before or after the XACK.
  const Picos wait = later(reorder_wait(s), picos_from_nanos(s.srtt_ns) / 4);
  s.response_at = earlier(known, core_.now + later(wait, Picos{1}));
}

// Asks for what must have been lost; true when something is to be sent for that.
bool RequesterPart::ask_missing(QueuePair& qp) {
  const RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  const Picos wait = reorder_wait(s);
  const Picos patience = probe_after(qp);
  s.response_at = kNever;
  bool asks = false;
  for (Psn psn = r.una_psn; before(psn, s.responses_to); ++psn) {
    const SentPacket& answer = s.at(psn);
    if (answer.has(sent_flag::delivered | sent_flag::in_flight | sent_flag::lost)) continue;
    const bool asked = answer.has(sent_flag::asked);
    const Picos since = core_.spans_stop(answer.sent_at) ? core_.stops.until : answer.sent_at;
    const Picos due = since + (asked ? patience : wait);
    if (due > core_.now && !(asked && answer.sent_at + wait < s.newest_ask)) {
      s.response_at = earlier(s.response_at, due);
      continue;
    }
    const std::uint32_t runs = s.asks.size();
    if (!ask(qp, psn)) {
      s.response_at = core_.now + kRetryAsking;
      break;
    }
    core_.counters.implied_naks += s.asks.size() - runs;
    asks = true;
  }
  if (asks) s.believe();
  return asks;
}

}  // namespace paceline::transport
