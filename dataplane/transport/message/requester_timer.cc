#include "dataplane/transport/message/requester_timer.h"

#include <algorithm>

namespace paceline::transport {

namespace {

constexpr Picos kLeastProbeWait = picos_from_micros(5);

}  // namespace

void RequesterTimer::set(EngineCore& core, QueuePair& qp, Picos at) {
  if (at >= kNoTimeout) return;
  const std::uint32_t index = core.qp_index(qp);
  // Deadlines mostly move later: the entry stays where it is and is re-armed when it fires.
  if (core.qp_timers.contains(index) && core.qp_timers.deadline_of(index) <= at) return;
  core.qp_timers.schedule(index, at);
}

void RequesterTimer::arm(EngineCore& core, QueuePair& qp) {
  qp.requester.timeout_at = core.awake() + qp.config.retransmit_timeout;
  set(core, qp, core.awake_to_time(qp.requester.timeout_at));
}

void RequesterTimer::limit_rate(EngineCore& core, QueuePair& qp, Rate rate,
                                std::uint32_t burst_bytes) {
  RequesterState& r = qp.requester;
  r.rate_limited = rate.bps != 0;
  if (!r.rate_limited) return;
  const Picos burst = later(serialization_time(burst_bytes, rate), core.config.pacing_catch_up);
  r.rate_limit = RateLimit(rate, burst, core.now);
}

void RequesterTimer::charge_limit(EngineCore& core, QueuePair& qp, std::uint32_t bytes) {
  RequesterState& r = qp.requester;
  const Picos next = r.rate_limit.charge(bytes, core.now);
  if (next <= core.now) return;
  r.blocked_until = later(r.blocked_until, next);
  set(core, qp, r.blocked_until);
}

// How long silence may last before the oldest packet is sent again, and how long a requested answer
// may take.
Picos RequesterTimer::probe_after(EngineCore& core, const QueuePair& qp) {
  const SelectiveSend& s = qp.selective->send;
  const std::uint32_t round_trip =
      std::max({s.round_trip.smoothed_ns(), s.last_rtt_ns, s.asks.round_trip().smoothed_ns()});
  const Picos known = round_trip == 0 ? picos_from_nanos(core.config.base_rtt_ns) * 4
                                      : picos_from_nanos(round_trip) * 2 + reorder_wait(s);
  return s.patience.probe_wait(later(kLeastProbeWait, known));
}

void RequesterTimer::arm_selective(EngineCore& core, QueuePair& qp) {
  RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  r.timeout_at = kNever;
  if (r.position.oldest() == r.position.end()) return;
  if (r.blocked_until > core.now) set(core, qp, r.blocked_until);
  // Probe while probes may help, each after twice the time of the one before; then use the timer.
  const Picos timeout = qp.config.retransmit_timeout;
  const bool no_timeout = timeout >= kNoTimeout;
  const unsigned doubled = std::min<unsigned>(s.probes, 10);
  Picos at = s.progress_at + probe_after(core, qp) * (std::int64_t{1} << doubled);
  if (!no_timeout && (s.probes >= kProbes || at > s.progress_at + timeout)) {
    at = s.progress_at + timeout;
  }
  r.timeout_at = later(at, core.awake() + Picos{1});
  if (s.window.missing() != 0 && s.response_at == kNever && s.probes < kProbes) {
    s.response_at = core.now + probe_after(core, qp);  // the peer answers again
  }
  const Picos timer = core.awake_to_time(r.timeout_at);
  set(core, qp, earlier(earlier(timer, s.reorder_at), s.response_at));
}

// How much later than others a packet may arrive before it counts as lost.
Picos RequesterTimer::reorder_wait(const SelectiveSend& s) {
  return s.patience.reordering(s.round_trip.least_ns());
}

}  // namespace paceline::transport
