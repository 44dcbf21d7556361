// Selective repeat, second half: what was lost goes out again, oldest first; and when nothing is
// heard for two round trips, the oldest packet is sent again to learn how things are (after the
// tail loss probe of RFC 8985). Answers to READs and atomics: selective_answers.cc.
#include <algorithm>

#include "dataplane/transport/requester.h"

namespace paceline::transport {

namespace {
constexpr Picos kLeastProbeWait = picos_from_micros(5);
// Waiting for congestion control is no timeout, but a peer that is gone grants nothing for ever.
constexpr std::uint8_t kHeldAtMost = 16;
}  // namespace

// Of the queued request that `psn` belongs to; tail() when there is none.
std::uint32_t RequesterPart::position_of(const QueuePair& qp, Psn psn) const {
  const SendQueue& queue = qp.requester.queue;
  for (std::uint32_t p = queue.head(); p != queue.tail(); ++p) {
    const std::int32_t index = distance(psn, queue.at(p).first_psn);
    if (index >= 0 && index < static_cast<std::int32_t>(queue.at(p).packets)) return p;
  }
  return queue.tail();
}

std::uint32_t RequesterPart::repair_wire_bytes(const EngineCore& core, const QueuePair& qp) {
  SelectiveSend& s = qp.selective->send;
  if (!s.asks.empty()) {
    return request_wire_of(core, qp,
                           qp.requester.queue.front());  // all requests are as long as that
  }
  return s.at(s.oldest_lost()).wire_bytes;
}

// Requires RequesterState::repair. False as in build_next.
bool RequesterPart::build_repair(QueuePair& qp, Packet& packet) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (!s.asks.empty()) return build_ask(qp, packet);
  const Psn psn = s.oldest_lost();
  SentPacket& sent = s.at(psn);
  const std::uint32_t position = position_of(qp, psn);
  const SendEntry& entry = r.queue.at(position);
  const auto index = static_cast<std::uint32_t>(distance(psn, entry.first_psn));
  std::uint32_t payload = 0;
  if (entry.answered) {
    build_read(qp, packet, entry, index, sent.extent);
  } else {
    payload = payload_of(qp, entry, index);
    if (!fill_payload(qp, packet, position, std::uint64_t{index} * qp.mtu, payload)) return false;
    build_data(qp, packet, entry, index, psn, payload, true);
    want_telemetry(qp, packet);
    r.backlog_bytes -= payload;
    core_.contexts[qp.context].backlog_bytes -= payload;
  }
  core_.count_retransmitted(qp);
  core_.counters.retransmitted_bytes += payload;
  r.since_ack_request = 0;
  r.ack_requested_at = core_.now;
  r.inflight_bytes += packet.wire_bytes;
  --s.lost;
  s.lost_from = psn + 1;
  update_repair(qp);
  note_sent(qp, psn, packet.wire_bytes, sent.extent, entry.answered);
  return true;
}

// How long nothing may be heard before the oldest packet is sent again; and how long an answer that
// was asked for may take.
Picos RequesterPart::probe_after(const QueuePair& qp) const {
  const SelectiveSend& s = qp.selective->send;
  const std::uint32_t round_trip = std::max({s.srtt_ns, s.last_rtt_ns, s.answer_rtt_ns});
  const Picos known = round_trip == 0 ? picos_from_nanos(core_.config.base_rtt_ns) * 4
                                      : picos_from_nanos(round_trip) * 2 + reorder_wait(s);
  return later(kLeastProbeWait, known) * (std::int64_t{1} << s.patience);
}

void RequesterPart::arm_selective(QueuePair& qp) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  r.timeout_at = kNever;
  if (r.una_psn == r.max_psn) return;
  if (r.blocked_until > core_.now) set_timer(qp, r.blocked_until);
  // Probes while they may help, each after twice the time of the one before; then the timer.
  const Picos timeout = qp.config.retransmit_timeout;
  const bool no_timeout = timeout >= kNoTimeout;
  const unsigned doubled = std::min<unsigned>(s.probes, 10);
  Picos at = s.progress_at + probe_after(qp) * (std::int64_t{1} << doubled);
  if (!no_timeout && (s.probes >= kProbes || at > s.progress_at + timeout)) {
    at = s.progress_at + timeout;
  }
  r.timeout_at = later(at, core_.awake() + Picos{1});
  if (s.missing != 0 && s.response_at == kNever && s.probes < kProbes) {
    s.response_at = core_.now + probe_after(qp);  // somebody is there again
  }
  const Picos timer = core_.awake_to_time(r.timeout_at);
  set_timer(qp, earlier(earlier(timer, s.reorder_at), s.response_at));
}

// The oldest packet is sent again; where answers are due, the oldest and the last of them are asked
// for: what is missing between them shows when the last one comes. The peer does not repeat what it
// has not sent yet.
void RequesterPart::probe_tail(QueuePair& qp) {
  const RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  ++core_.counters.tail_probes;
  forget_asks(qp);
  if (!before(r.una_psn, s.peer_expected)) {
    unsend(qp, r.una_psn);
    return;
  }
  Psn last = s.within_window(r.una_psn, s.peer_expected) - 1;
  while (s.at(last).has(sent_flag::delivered)) last = last - 1;
  if (s.asks.empty()) {
    ask(qp, r.una_psn);
    if (last != r.una_psn) ask(qp, last);
  }
  // A request behind them may be lost as well.
  if (before(s.peer_expected, r.next_psn)) {
    const SentPacket& next = s.at(s.peer_expected);
    if (next.has(sent_flag::in_flight) && next.sent_at + probe_after(qp) <= core_.now) {
      unsend(qp, s.peer_expected);
    }
  }
}

void RequesterPart::on_selective_timer(QueuePair& qp) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (r.blocked_until > core_.now) {
    set_timer(qp, r.blocked_until);
    return;
  }
  std::uint64_t lost = 0;
  if (s.reorder_at <= core_.now) lost = find_lost(qp);
  if (s.response_at <= core_.now) {
    s.response_at = kNever;
    // Of a peer that is silent nothing is asked but what probes ask.
    if (s.probes < kProbes && !r.response_waits) ask_missing(qp);
  }
  bool timed_out = false;
  bool probed = false;
  if (r.timeout_at <= core_.awake() && r.una_psn != r.max_psn) {
    const Picos timeout = qp.config.retransmit_timeout;
    // The answer is here, and it is our own memory that is late; or nothing is under way, and what
    // is to be sent again waits for congestion control.
    const bool held_here =
        r.inflight_bytes == 0 && s.at(r.una_psn).has(sent_flag::lost) && s.held < kHeldAtMost;
    if (r.response_waits) {
      s.progress_at = core_.awake();
    } else if (held_here && core_.awake() - s.progress_at >= timeout) {
      s.progress_at = core_.awake();
      s.probes = 0;
      ++s.held;
      probed = true;
    } else if (timeout < kNoTimeout && core_.awake() - s.progress_at >= timeout) {
      timed_out = true;
      ++core_.counters.timeouts;
      ++qp.counters.timeouts;
      if (r.retries_left == 0) {
        fail(qp, s.failing ? s.failing_status : CompletionStatus::retry_exceeded);
        return;
      }
      --r.retries_left;
      s.progress_at = core_.awake();
      s.probes = 0;
      for (Psn psn = r.una_psn; before(psn, r.next_psn) && distance(psn, r.una_psn) < s.window();
           ++psn) {
        if (!s.at(psn).has(sent_flag::in_flight)) continue;
        lost += s.at(psn).wire_bytes;
        mark_lost(qp, psn);
      }
      if (!s.at(r.una_psn).has(sent_flag::lost)) probe_tail(qp);
    } else {
      if (s.probes < 255) ++s.probes;
      probe_tail(qp);
      probed = true;
    }
  }
  // Of a probe, too: an algorithm that asks the peer for a rate may think that all is sent.
  if (lost == 0 && !timed_out && !probed) {
    core_.actions.resume_announced(qp);
  } else {
    core_.actions.resume(qp);
    cc::Event& event = core_.actions.deliver(qp.context);
    event.signal = timed_out ? cc::Signal::timeout : cc::Signal::nack;
    event.lost_bytes = static_cast<std::uint32_t>(lost);
  }
  arm_selective(qp);
}

}  // namespace paceline::transport
