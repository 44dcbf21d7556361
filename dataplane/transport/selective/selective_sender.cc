#include "dataplane/transport/selective/selective_sender.h"

#include <algorithm>
#include <bit>

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/message/ack_progress.h"
#include "dataplane/transport/message/packet_builder.h"
#include "dataplane/transport/message/qp_failure.h"
#include "dataplane/transport/message/request_order.h"
#include "dataplane/transport/message/requester_timer.h"
#include "dataplane/transport/message/scoreboard.h"
#include "dataplane/transport/message/send_window.h"
#include "dataplane/transport/read/read_requester.h"
#include "dataplane/transport/selective/answer_repair.h"
#include "dataplane/wire/extensions/xack.h"

namespace paceline::transport {

namespace {

// The records that the triggering packet collected on its way, in `stack`; nullptr: none.
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

// Waiting for congestion control is not a timeout, but a peer that is gone grants nothing for ever.
constexpr std::uint8_t kHeldAtMost = 16;

}  // namespace

ResponseOutcome SelectiveSender::accept_response(EngineCore& core, QueuePair& qp,
                                                 const wire::ParsedPacket& parsed,
                                                 const Packet& packet) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (!can_send(qp.state)) return ResponseOutcome::done;
  const Psn psn = parsed.psn;
  if (before(psn, r.position.oldest()) || !before(psn, r.position.end())) {
    ++core.counters.stale_acks;
    AnswerRepair::note_repeated(core, qp);
    return ResponseOutcome::done;
  }
  if (distance(psn, r.position.oldest()) >= s.window.size()) {
    ++core.counters.beyond_window;  // not an answer to any request
    return ResponseOutcome::done;
  }
  const std::uint32_t position = Scoreboard::position_of(qp, psn);
  const SendEntry& entry = r.queue.at(position);
  if (position == r.queue.tail() || !entry.has_response ||
      s.window.at(psn).has(sent_flag::delivered)) {
    ++core.counters.stale_acks;
    AnswerRepair::note_repeated(core, qp);
    return ResponseOutcome::done;
  }
  if (const ResponseTaken taken = ReadRequester::take_response(core, qp, entry, parsed, packet);
      taken != ResponseTaken::yes) {
    return taken == ResponseTaken::pending ? ResponseOutcome::pending : ResponseOutcome::done;
  }
  // The request, and everything before it, was accepted, or there would be no answer. An atomic may
  // have been sent again after that.
  std::uint64_t acked = 0;
  if (!before(psn, s.window.peer_expected()))
    acked = Scoreboard::acknowledge_before(core, qp, s.window.end_of_request(psn));
  if (s.window.at(psn).has(sent_flag::request)) acked += Scoreboard::mark_delivered(core, qp, psn);
  const Picos newest_ask = s.asks.newest();
  AnswerRepair::note_answer(core, qp, psn);
  core.take_inflight(qp, s.asks.answered());
  AnswerRepair::note_late(core, qp, psn + 1);
  if (parsed.properties.has_aeth() && parsed.ext.aeth.is_ack())
    RequestOrder::on_credits(core, qp, parsed.ext.aeth);
  advance(core, qp);
  if (before(r.position.oldest(), s.window.peer_expected())) AnswerRepair::note_atomic(core, qp);
  s.probes = s.held = 0;
  s.progress_at = core.awake();
  bool asks = false;
  if (s.window.missing() == 0) {
    s.response_at = kNever;
  } else if (s.response_at <= core.now || s.asks.newest() != newest_ask) {
    asks = AnswerRepair::ask_missing(core, qp);
  }
  core.actions.settle_or_idle(qp);
  if (asks) core.actions.resume_and_report(qp);
  AckProgress::report_ack(core, qp, acked, 0);
  RequesterTimer::arm_selective(core, qp);
  if (s.refused && r.position.oldest() == s.refused->psn)
    QpFailure::fail(core, qp, s.refused->status, s.refused->psn);
  return ResponseOutcome::done;
}

std::uint32_t SelectiveSender::next_wire_bytes(const EngineCore& core, const QueuePair& qp) {
  SelectiveSend& s = qp.selective->send;
  if (!s.asks.empty()) {
    return SendWindow::request_wire_of(
        core, qp,
        qp.requester.queue.front());  // all requests are as long as that
  }
  return s.window.at(s.window.oldest_lost()).wire_bytes;
}

// Requires RequesterState::repair. False as in build_next.
bool SelectiveSender::build_repair(EngineCore& core, QueuePair& qp, Packet& packet) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (!s.asks.empty()) return AnswerRepair::build_ask(core, qp, packet);
  const Psn psn = s.window.oldest_lost();
  const SentPacket& sent = s.window.at(psn);
  const std::uint32_t position = Scoreboard::position_of(qp, psn);
  const SendEntry& entry = r.queue.at(position);
  const auto index = static_cast<std::uint32_t>(distance(psn, entry.first_psn));
  std::uint32_t payload = 0;
  if (entry.has_response) {
    PacketBuilder::build_read(core, qp, packet, entry, index, sent.extent);
  } else {
    payload = SendWindow::payload_of(qp, entry, index);
    if (!PacketBuilder::fill_payload(core, qp, packet, position, std::uint64_t{index} * qp.mtu,
                                     payload))
      return false;
    PacketBuilder::build_data(core, qp, packet, entry, index, psn, payload, true);
    PacketBuilder::want_telemetry(core, qp, packet);
    core.take_backlog(qp, payload);
  }
  core.count_retransmitted(qp);
  core.counters.retransmitted_bytes += payload;
  r.ack_requests.asked(core.now);
  r.inflight_bytes += packet.wire_bytes;
  Scoreboard::note_sent(core, qp, psn, packet.wire_bytes, sent.extent, entry.has_response);
  Scoreboard::update_repair(qp);
  return true;
}

// The oldest packet is sent again. If answers are due, the oldest and the last of them are asked
// for: missing ones in between show when the last one comes. The peer does not repeat responses
// that it has not sent yet.
void SelectiveSender::probe_tail(EngineCore& core, QueuePair& qp) {
  const RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  ++core.counters.tail_probes;
  core.take_inflight(qp, s.asks.answered());
  const Psn expected = s.window.peer_expected();
  if (!before(r.position.oldest(), expected)) {
    Scoreboard::mark_for_retransmission(core, qp, r.position.oldest());
    return;
  }
  Psn last = s.window.within(r.position.oldest(), expected) - 1;
  while (s.window.at(last).has(sent_flag::delivered)) last = last - 1;
  if (s.asks.empty()) {
    AnswerRepair::ask(core, qp, r.position.oldest());
    if (last != r.position.oldest()) AnswerRepair::ask(core, qp, last);
  }
  // A request behind them may be lost as well.
  if (before(expected, r.position.next())) {
    const SentPacket& next = s.window.at(expected);
    if (next.has(sent_flag::in_flight) &&
        next.sent_at + RequesterTimer::probe_after(core, qp) <= core.now) {
      Scoreboard::mark_for_retransmission(core, qp, expected);
    }
  }
}

void SelectiveSender::on_timer(EngineCore& core, QueuePair& qp) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (r.blocked_until > core.now) {
    RequesterTimer::set(core, qp, r.blocked_until);
    return;
  }
  std::uint64_t lost = 0;
  if (s.reorder_at <= core.now) lost = Scoreboard::find_lost(core, qp);
  if (s.response_at <= core.now) {
    s.response_at = kNever;
    // A silent peer is asked only what probes ask.
    if (s.probes < kProbes && !r.response_waits) AnswerRepair::ask_missing(core, qp);
  }
  bool timed_out = false;
  bool probed = false;
  if (r.timeout_at <= core.awake() && r.position.oldest() != r.position.end()) {
    const Picos timeout = qp.config.retransmit_timeout;
    // The answer is here, and our own memory is late; or nothing is in flight, and the packets to
    // send again wait for congestion control.
    const bool held_here = r.inflight_bytes == 0 &&
                           s.window.at(r.position.oldest()).has(sent_flag::lost) &&
                           s.held < kHeldAtMost;
    if (r.response_waits) {
      s.progress_at = core.awake();
    } else if (held_here && core.awake() - s.progress_at >= timeout) {
      s.progress_at = core.awake();
      s.probes = 0;
      ++s.held;
      probed = true;
    } else if (timeout < kNoTimeout && core.awake() - s.progress_at >= timeout) {
      timed_out = true;
      ++core.counters.timeouts;
      ++qp.counters.timeouts;
      if (!r.retries.spend()) {
        QpFailure::fail(core, qp, s.refused ? s.refused->status : CompletionStatus::retry_exceeded);
        return;
      }
      s.progress_at = core.awake();
      s.probes = 0;
      if (core.config.planes > 1) core.change_plane(qp);
      lost += Scoreboard::lose_flying(core, qp, r.position.oldest());
      if (!s.window.at(r.position.oldest()).has(sent_flag::lost)) probe_tail(core, qp);
    } else {
      if (s.probes < 255) ++s.probes;
      if (core.config.planes > 1 && s.probes > 1) core.change_plane(qp);
      probe_tail(core, qp);
      probed = true;
    }
  }
  // A probe is reported as well: an algorithm that asks the peer for a rate may think that all is
  // sent.
  if (lost == 0 && !timed_out && !probed) {
    core.actions.resume_and_report(qp);
  } else {
    core.actions.resume(qp);
    cc::Event& event = core.actions.deliver(qp.context);
    event.signal = timed_out ? cc::Signal::timeout : cc::Signal::nack;
    event.lost_bytes = static_cast<std::uint32_t>(lost);
  }
  RequesterTimer::arm_selective(core, qp);
}

// A plain ACK or NAK: from a peer that does not know yet that we speak XACK.
void SelectiveSender::on_acknowledge(EngineCore& core, QueuePair& qp,
                                     const wire::ParsedPacket& parsed) {
  const RequesterState& r = qp.requester;
  wire::Xack xack;
  xack.aeth = parsed.ext.aeth;
  xack.trigger = r.position.oldest() - 1;
  xack.marked_bytes = qp.selective->send.marked.total();  // it says nothing about marks
  const bool is_ack = xack.aeth.is_ack();
  const Psn expected = is_ack ? parsed.psn + 1 : parsed.psn;
  const bool gap = xack.aeth.kind() == wire::AethKind::nak &&
                   xack.aeth.nak_code() == wire::NakCode::psn_sequence_error;
  if (gap) {
    xack.aeth = wire::Aeth::ack(xack.aeth.msn);
    ++core.counters.naks_received;
    ++qp.counters.naks_received;
    // The peer has dropped everything from there on.
    const Psn oldest = r.position.oldest();
    Scoreboard::lose_flying(core, qp, before(expected, oldest) ? oldest : expected);
  }
  on_xack(core, qp, expected, xack);
}

void SelectiveSender::on_xack(EngineCore& core, QueuePair& qp, Psn expected,
                              const wire::Xack& xack) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (before(r.position.end(), expected) ||
      distance(r.position.oldest(), expected) > s.window.size()) {
    ++core.counters.stale_acks;
    return;
  }
  PathSet& paths = qp.selective->paths;
  if (!xack.duplicate && !xack.trimmed) paths.arrived(xack.trigger_port);
  if (xack.marked) paths.marked(xack.marked_port);

  // A trimmed packet skipped the queue at which it was trimmed: its round trip tells nothing.
  std::uint32_t rtt_ns = 0;
  if (s.window.keeps(r.position, xack.trigger) && !xack.trimmed) {
    const SentPacket& sent = s.window.at(xack.trigger);
    if (sent.has(sent_flag::in_flight) && !sent.has(sent_flag::again)) {
      rtt_ns = AckProgress::sample_rtt(core, sent.sent_at);
    }
    if (rtt_ns != 0) {
      const std::uint32_t hold = xack.hold_ns;
      if (rtt_ns > hold) rtt_ns -= hold;
      s.round_trip.add(rtt_ns);
      s.last_rtt_ns = rtt_ns;
      // Round trips are measured again: there is no reason to doubt them any longer.
      s.patience.on_round_trip();
      // Slower than the others by more than a quarter of an empty path: the path has a queue of its
      // own.
      if (rtt_ns > s.round_trip.smoothed_ns() + s.round_trip.least_ns() / 4)
        paths.marked(sent.port);
    }
  }
  // A packet was sent again in vain: there is more reordering than was assumed, or round trips have
  // become longer. A packet that was sent twice measures none (Karn). Without patience, a queue
  // that grows faster than round trips are measured would cause a probe for every packet of a small
  // window, and would never be measured. Both measures are forgotten slowly.
  if (xack.duplicate) s.patience.on_repeated_packet();

  std::uint64_t acked = 0;
  acked += Scoreboard::acknowledge_before(core, qp, expected);
  const Psn first = expected + 1 + xack.bitmap_offset;
  for (unsigned word = 0; word < xack.bitmap.size(); ++word) {
    for (std::uint64_t bits = xack.bitmap[word]; bits != 0; bits &= bits - 1) {
      const Psn psn = first + (word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
      if (s.window.keeps(r.position, psn)) acked += Scoreboard::mark_delivered(core, qp, psn);
    }
  }
  if (xack.aeth.is_ack()) RequestOrder::on_credits(core, qp, xack.aeth);
  const bool advanced = advance(core, qp);
  if (before(r.position.oldest(), s.window.peer_expected())) AnswerRepair::note_atomic(core, qp);
  if (acked != 0 || advanced) {
    s.probes = s.held = 0;
    s.progress_at = core.awake();
  }
  const std::uint64_t trimmed =
      xack.trimmed ? Scoreboard::take_trim(core, qp, xack.trigger, xack.trigger_port) : 0;
  // The packet is sent again at once: a probe would only double it.
  if (trimmed != 0) {
    s.probes = 0;
    s.progress_at = core.awake();
  }
  const std::uint64_t lost = trimmed + Scoreboard::find_lost(core, qp);
  const std::uint32_t marked = s.marked.take(xack.marked_bytes, acked);
  IntStack stack;
  const IntStack* const int_stack = records_of(xack, stack);
  if (lost != 0) {
    s.patience.on_loss();
    core.actions.settle(qp);
    cc::Event& event = core.actions.deliver(qp.context, int_stack);
    event.signal = cc::Signal::nack;
    event.lost_bytes = static_cast<std::uint32_t>(lost);
    event.acked_bytes = static_cast<std::uint32_t>(acked);
    event.marked_bytes = marked;
    event.trimmed_bytes = static_cast<std::uint32_t>(trimmed);
  } else {
    // Packets that were to be sent again may have arrived after all.
    core.actions.settle_or_idle(qp);
    AckProgress::report_ack(core, qp, acked, rtt_ns, marked, rtt_ns == 0 ? 0 : xack.hold_ns,
                            int_stack);
  }
  RequesterTimer::arm_selective(core, qp);
  if (!xack.aeth.is_ack()) {
    refused(core, qp, expected, xack.aeth);
  } else if (s.refused && r.position.oldest() == s.refused->psn) {
    QpFailure::fail(core, qp, s.refused->status, s.refused->psn);
  }
}

// The expected packet was put off, or refused.
void SelectiveSender::refused(EngineCore& core, QueuePair& qp, Psn expected, wire::Aeth aeth) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (before(expected, s.window.peer_expected())) return;  // an outdated answer
  if (aeth.kind() == wire::AethKind::rnr_nak) {
    on_rnr_nak(core, qp, expected, aeth);
    return;
  }
  ++core.counters.error_naks_received;
  const CompletionStatus status = AckProgress::status_of(aeth.nak_code());
  if (expected == r.position.oldest()) {
    QpFailure::fail(core, qp, status, expected);
    return;
  }
  // READs before it may still complete.
  s.refused = Refusal{expected, status};
}

void SelectiveSender::on_rnr_nak(EngineCore& core, QueuePair& qp, Psn expected, wire::Aeth aeth) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  ++core.counters.rnr_received;
  ++qp.counters.rnr_received;
  if (!s.window.keeps(r.position, expected)) return;
  const SentPacket& sent = s.window.at(expected);
  if (sent.flags == 0 || sent.has(sent_flag::lost)) return;
  if (!r.retries.spend_rnr()) {
    QpFailure::fail(core, qp, CompletionStatus::rnr_retry_exceeded, expected);
    return;
  }
  // Even if the peer had held it for a while.
  Scoreboard::mark_for_retransmission(core, qp, expected);
  r.blocked_until = core.now + wire::rnr_timer(aeth.value());
  s.progress_at = core.awake() + (r.blocked_until - core.now);
  core.actions.settle(qp);
  core.actions.released(qp.context);
  RequesterTimer::arm_selective(core, qp);
}

// Packets that are done leave the window, from the oldest on. True when some did. A bit of an XACK
// is not final: a packet that was held may be put off when its turn comes (RNR).
bool SelectiveSender::advance(EngineCore& core, QueuePair& qp) {
  RequesterState& r = qp.requester;
  const Psn from = r.position.oldest();
  const std::uint8_t answered = qp.selective->send.window.retire(r.position);
  if (r.position.oldest() == from) return false;
  r.outstanding_reads = static_cast<std::uint8_t>(r.outstanding_reads - answered);
  Scoreboard::update_repair(qp);
  SendWindow::complete_before(core, qp, r.position.oldest());
  r.retries.renew(qp.config.retry_count, qp.config.rnr_retry);
  Scoreboard::update_window(qp);
  if (r.ordering_constraints != 0) {
    RequestOrder::check(qp);
    RequestOrder::check_drained(core, qp);
  }
  return true;
}

}  // namespace paceline::transport
