// Selective repeat, second half: what was lost goes out again, oldest first; READ responses that
// are missing are asked for, range by range; and when nothing is heard for two round trips, the
// oldest packet is sent again to learn how things are (after the tail loss probe of RFC 8985).
#include <algorithm>

#include "dataplane/transport/requester.h"
#include "dataplane/transport/scheduler.h"

namespace paceline::transport {

namespace {
constexpr std::uint8_t kProbes = 2;  // before the retransmission timer
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

std::uint32_t RequesterPart::repair_wire_bytes(const QueuePair& qp) const {
  SelectiveSend& s = qp.selective->send;
  if (!s.asks.empty()) {
    return request_wire_of(qp, qp.requester.queue.front());  // all requests are as long as that
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
    build_read(qp, packet, entry, 0, entry.packets);
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

void RequesterPart::ask(QueuePair& qp, Psn first, std::uint32_t count) {
  SelectiveSend& s = qp.selective->send;
  if (s.asks.full()) return;  // the next round asks
  s.asks.push({first, count});
  qp.requester.repair = true;
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
    return Outcome::done;
  }
  if (distance(psn, r.una_psn) >= s.window()) {
    ++core_.counters.beyond_window;  // asked for again when its turn comes
    return Outcome::done;
  }
  const std::uint32_t position = position_of(qp, psn);
  const SendEntry& entry = r.queue.at(position);
  if (position == r.queue.tail() || !entry.answered || s.at(psn).has(sent_flag::delivered)) {
    ++core_.counters.stale_acks;
    return Outcome::done;
  }
  switch (take_response(qp, entry, parsed, packet)) {
    case Taken::yes:
      break;
    case Taken::pending:
      return Outcome::pending;
    case Taken::failed:
      return Outcome::done;
  }
  // The request, and all before it, was accepted: or there would be no answer.
  std::uint64_t acked = acknowledge_before(qp, entry.first_psn + entry.packets);
  // It may have been sent again after it was accepted.
  if (!before(entry.first_psn, r.una_psn)) acked += mark_delivered(qp, s.at(entry.first_psn));
  s.at(psn).set(sent_flag::delivered);
  forget_asks(qp);
  if (before(s.responses_to, psn + 1)) s.responses_to = psn + 1;
  if (parsed.properties.has_aeth() && parsed.ext.aeth.is_ack()) take_credits(qp, parsed.ext.aeth);
  advance_selective(qp);
  s.probes = s.held = 0;
  s.progress_at = core_.awake();
  if (before(r.una_psn, s.responses_to)) {
    const Picos wait = later(reorder_wait(s), picos_from_nanos(s.srtt_ns) / 4);
    if (s.response_at == kNever) s.response_at = core_.now + later(wait, Picos{1});
  } else {
    s.response_at = kNever;
  }
  settle_repaired(qp);
  report_ack(qp, acked, 0);
  arm_selective(qp);
  if (s.failing && r.una_psn == s.failing_psn) fail(qp, s.failing_status, s.failing_psn);
  return Outcome::done;
}

// Responses that are missing although later ones are here.
void RequesterPart::ask_missing(QueuePair& qp) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  const Psn end = s.within_window(r.una_psn, s.responses_to);
  Psn psn = r.una_psn;
  while (before(psn, end) && !s.asks.full()) {
    const std::uint32_t position = position_of(qp, psn);
    if (position == r.queue.tail()) break;
    const SendEntry& entry = r.queue.at(position);
    const Psn entry_end = entry.first_psn + entry.packets;
    const Psn stop = before(entry_end, end) ? entry_end : end;
    // A request that has not been accepted is repaired as any other packet is.
    const bool open = !entry.answered || s.at(entry.first_psn).has(sent_flag::lost) ||
                      is_atomic(entry.request.opcode);
    while (!open && before(psn, stop)) {
      if (s.at(psn).has(sent_flag::delivered)) {
        ++psn;
        continue;
      }
      const Psn first = psn;
      while (before(psn, stop) && !s.at(psn).has(sent_flag::delivered)) ++psn;
      ++core_.counters.implied_naks;
      ask(qp, first, static_cast<std::uint32_t>(distance(psn, first)));
    }
    psn = stop;
  }
  s.response_at = core_.now + probe_after(qp);
}

// How long nothing may be heard before the oldest packet is sent again.
Picos RequesterPart::probe_after(const QueuePair& qp) const {
  const SelectiveSend& s = qp.selective->send;
  const Picos known =
      s.srtt_ns == 0 ? picos_from_nanos(core_.config.base_rtt_ns) * 4
                     : picos_from_nanos(std::max(s.srtt_ns, s.last_rtt_ns)) * 2 + reorder_wait(s);
  return later(kLeastProbeWait, known) * (std::int64_t{1} << s.patience);
}

void RequesterPart::arm_selective(QueuePair& qp) {
  RequesterState& r = qp.requester;
  const SelectiveSend& s = qp.selective->send;
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
  const Picos timer = core_.awake_to_time(r.timeout_at);
  set_timer(qp, earlier(earlier(timer, s.reorder_at), s.response_at));
}

void RequesterPart::probe_tail(QueuePair& qp) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  ++core_.counters.tail_probes;
  forget_asks(qp);
  const std::uint32_t position = position_of(qp, r.una_psn);
  if (position == r.queue.tail()) return;
  const SendEntry& entry = r.queue.at(position);
  const bool accepted = !s.at(entry.first_psn).has(sent_flag::in_flight | sent_flag::lost);
  if (entry.request.opcode == WorkOpcode::read && (accepted || r.una_psn != entry.first_psn)) {
    // What is missing up to the next response that is here.
    const auto index = static_cast<std::uint32_t>(distance(r.una_psn, entry.first_psn));
    const auto most = static_cast<std::uint32_t>(s.window());
    std::uint32_t count = 1;
    while (count < most && index + count < entry.packets &&
           !s.at(r.una_psn + count).has(sent_flag::delivered)) {
      ++count;
    }
    if (count == most) count = entry.packets - index;
    if (s.asks.empty()) ask(qp, r.una_psn, count);
    return;
  }
  unsend(qp, r.una_psn);
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
  if (s.response_at <= core_.now) ask_missing(qp);
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
    resume_announced(qp);
  } else {
    resume(qp);
    cc::Event event;
    event.signal = timed_out ? cc::Signal::timeout : cc::Signal::nack;
    event.lost_bytes = static_cast<std::uint32_t>(lost);
    scheduler_.deliver(qp.context, event);
  }
  arm_selective(qp);
}

}  // namespace paceline::transport
