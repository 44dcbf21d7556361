#include "dataplane/transport/selective/answer_repair.h"

#include "dataplane/transport/message/ack_progress.h"
#include "dataplane/transport/message/packet_builder.h"
#include "dataplane/transport/message/requester_timer.h"
#include "dataplane/transport/message/scoreboard.h"

namespace paceline::transport {

namespace {

// When to try again if there is no room for the requests for answers.
constexpr Picos kRetryAsking = picos_from_micros(1);

}  // namespace

bool AnswerRepair::build_ask(EngineCore& core, QueuePair& qp, Packet& packet) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  const ResponseAsk wanted = s.asks.take();
  Scoreboard::update_repair(qp);
  const SendEntry& entry = r.queue.at(Scoreboard::position_of(qp, wanted.first));
  PacketBuilder::build_read(core, qp, packet, entry,
                            static_cast<std::uint32_t>(distance(wanted.first, entry.first_psn)),
                            wanted.count);
  s.window.asked(wanted.first, wanted.count, core.now);
  core.count_retransmitted(qp);
  r.ack_requests.asked(core.now);
  r.inflight_bytes += packet.wire_bytes;
  s.asks.sent(packet.wire_bytes);
  if (r.timeout_at == kNever) RequesterTimer::arm_selective(core, qp);
  return true;
}

// Asks again for the answer `psn`, which has not come; its request has been accepted. False when
// there is no room for that now.
bool AnswerRepair::ask(EngineCore& core, QueuePair& qp, Psn psn) {
  SelectiveSend& s = qp.selective->send;
  const SendEntry& entry = qp.requester.queue.at(Scoreboard::position_of(qp, psn));
  if (is_atomic(entry.request.opcode)) {
    Scoreboard::mark_for_retransmission(core, qp, psn);
    return true;
  }
  const bool begins = s.window.at(psn - 1).has(sent_flag::ends);
  if (!s.asks.add(psn, !begins, qp.requester.position.oldest())) return false;
  s.window.ask(psn, core.now);
  qp.requester.repair = true;
  return true;
}

// The answer is here. If it came sooner than a round trip after asking, it is the one that was
// thought lost, and tells nothing about the time that answers take. Nor does an answer that was
// asked for twice.
void AnswerRepair::note_answer(EngineCore& core, QueuePair& qp, Psn psn) {
  SelectiveSend& s = qp.selective->send;
  const SentPacket& answer = s.window.at(psn);
  s.window.answer(psn);
  if (!answer.has(sent_flag::asked)) return;
  if (core.now - answer.sent_at < picos_from_nanos(s.round_trip.least_ns())) return;
  s.asks.came(answer.sent_at);
  const std::uint32_t rtt_ns =
      answer.has(sent_flag::again) ? 0 : AckProgress::sample_rtt(core, answer.sent_at);
  if (rtt_ns == 0) return;
  s.asks.measured(rtt_ns);
  s.patience.on_round_trip();
}

// An answer came twice: it was asked for again in vain, or there is more reordering than was
// assumed.
void AnswerRepair::note_repeated(EngineCore& core, QueuePair& qp) {
  SelectiveSend& s = qp.selective->send;
  if (s.asks.repeated(core.now, s.round_trip.smoothed_ns())) s.patience.on_repeated_response();
}

// Answers before `end` should be here.
void AnswerRepair::note_late(EngineCore& core, QueuePair& qp, Psn end) {
  SelectiveSend& s = qp.selective->send;
  if (s.window.expect_answers(end, core.now))
    s.response_at = earlier(s.response_at, core.now + RequesterTimer::reorder_wait(s));
}

// If nothing before an atomic is missing, its result was sent with its XACK at the latest.
void AnswerRepair::note_atomic(EngineCore& core, QueuePair& qp) {
  const RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  const Psn oldest = r.position.oldest();
  if (!is_atomic(r.queue.front().request.opcode) || before(oldest, s.window.answers_to())) return;
  if (s.window.at(oldest).has(sent_flag::in_flight | sent_flag::lost)) return;
  const Picos known = s.response_at;
  note_late(core, qp, oldest + 1);
  // It may have left before or after the XACK.
  const Picos wait =
      later(RequesterTimer::reorder_wait(s), picos_from_nanos(s.round_trip.smoothed_ns()) / 4);
  s.response_at = earlier(known, core.now + later(wait, Picos{1}));
}

// Asks for answers that must have been lost; true when something is to be sent for that.
bool AnswerRepair::ask_missing(EngineCore& core, QueuePair& qp) {
  const RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  const Picos wait = RequesterTimer::reorder_wait(s);
  const Picos patience = RequesterTimer::probe_after(core, qp);
  s.response_at = kNever;
  bool asks = false;
  for (Psn psn = r.position.oldest(); before(psn, s.window.answers_to()); ++psn) {
    const SentPacket& answer = s.window.at(psn);
    if (answer.has(sent_flag::delivered | sent_flag::in_flight | sent_flag::lost)) continue;
    const bool asked = answer.has(sent_flag::asked);
    const Picos since = core.spans_stop(answer.sent_at) ? core.stops.until : answer.sent_at;
    const Picos due = since + (asked ? patience : wait);
    if (due > core.now && !(asked && answer.sent_at + wait < s.asks.newest())) {
      s.response_at = earlier(s.response_at, due);
      continue;
    }
    const std::uint32_t runs = s.asks.waiting();
    if (!ask(core, qp, psn)) {
      s.response_at = core.now + kRetryAsking;
      break;
    }
    core.counters.implied_naks += s.asks.waiting() - runs;
    asks = true;
  }
  if (asks) s.patience.on_loss();
  return asks;
}

// The headers have overtaken responses that came through: only this one is asked for. Under
// go-back-N the next response shows the gap.
void AnswerRepair::on_trimmed(EngineCore& core, QueuePair& qp, Psn psn) {
  const RequesterState& r = qp.requester;
  if (!r.selective || !can_send(qp.state)) return;
  SelectiveSend& s = qp.selective->send;
  if (!s.window.keeps(r.position, psn)) return;
  const std::uint32_t position = Scoreboard::position_of(qp, psn);
  if (position == r.queue.tail()) return;
  const SendEntry& entry = r.queue.at(position);
  if (entry.request.opcode != WorkOpcode::read || s.window.at(psn).has(sent_flag::delivered))
    return;
  // There can be no response before the peer has the request.
  if (!before(psn, s.window.peer_expected())) return;
  ask(core, qp, psn);
  core.actions.settle(qp);
}

}  // namespace paceline::transport
