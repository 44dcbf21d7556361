// How a sender handles the receiver's messages GRANT and PATH.
#include <algorithm>

#include "cc/cadence/state_helpers.h"

namespace paceline::cc::cadence {
namespace {

std::int32_t stamp_distance(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b);
}

// Grants that answer a REQUEST older than the last give-up were computed for a sender that still
// held its rate; the receiver has released that capacity since.
bool is_void(const State& s, std::int64_t now, std::uint32_t stamp_echo) {
  if (s.gave_up_at == 0 || now - s.gave_up_at > kStampValidNs) return false;
  return stamp_distance(stamp_echo, stamp(s.gave_up_at)) < 0;
}

void take_grant(State& s, const CadenceParams& p, const Event& e, bool repeated, Decision& d) {
  const GrantMessage& g = *e.grant;
  const std::int64_t now = e.now.count;
  const std::int64_t lease_ns = std::int64_t{g.lease_us} * 1000;
  const std::uint64_t limit = extend_total(s.sent_total, g.limit_total);
  const bool in_force = s.phase == Phase::granted && s.grant_seq != 0;
  const std::uint32_t before = in_force ? s.grant_mbps : 0;
  const std::uint32_t rate = g.hold ? 0 : g.rate_mbps;

  s.lease_end = repeated && in_force ? std::max(s.lease_end, now + lease_ns) : now + lease_ns;
  s.limit_total = std::max(s.limit_total, limit);
  s.refresh_ns = static_cast<std::uint32_t>(std::max<std::int64_t>(lease_ns / 2, p.rtt_ns));
  if (!repeated || !in_force) {
    s.held = g.hold;
    // A newcomer that has not begun yet keeps its time to start, whatever its new rate: otherwise
    // the first change of all shares would start all waiting newcomers at the same time.
    const std::int64_t pending = in_force && s.next_mbps > 0 ? s.next_at : now;
    const bool waits = pending > now && s.next_mbps > before;
    const bool falls = pending > now && s.next_mbps < before;
    const std::int64_t delay = std::int64_t{g.effective_delay_us} * 1000;
    s.next_mbps = 0;
    if (rate > before && (delay > 0 || waits)) {
      s.grant_mbps = before;
      s.next_mbps = rate;
      s.next_at = waits ? pending : now + delay;
    } else if (rate < before && rate > 0 && delay > 0) {
      // The sender that gets the difference begins to use it that much later. Never longer than a
      // round trip, whatever the GRANT says.
      const std::int64_t at = now + std::min(delay, p.rtt_ns);
      s.next_mbps = rate;
      s.next_at = falls ? std::min(at, pending) : at;
    } else {
      s.grant_mbps = rate;
    }
    s.taken_stamp = stamp(now);
    // A decrease frees capacity only once it is confirmed, so it is confirmed at once, as is the
    // end of a decay or of the fallback. Any other increase is confirmed by the next REQUEST.
    if (rate < before || s.phase == Phase::decaying || s.phase == Phase::fallback) {
      d.request = true;
    }
  } else if (stamp_distance(g.timestamp_echo_ns, s.taken_stamp) < 0) {
    d.request = true;  // repeated because the confirmation got lost
  }
  s.grant_seq = g.grant_seq;
  if (s.phase != Phase::granted) enter(s, p, Phase::granted);
  s.probes = 0;
  d.fallback = false;
  s.request_at = now + std::max(s.refresh_ns, s.spacing_ns);
}

// REQUEST and GRANT overtake data, so their round trip measures the empty path and the hosts.
void time_control(State& s, std::int64_t now, const GrantMessage& g) {
  const std::uint32_t away = stamp(now) - g.timestamp_echo_ns;
  if (g.timestamp_echo_ns == 0 || away >= kStampValidNs || away <= g.receiver_hold_ns) return;
  const std::uint32_t rtt = away - g.receiver_hold_ns;
  s.control_rtt_ns =
      s.control_rtt_ns == 0 ? rtt : s.control_rtt_ns - s.control_rtt_ns / 4 + rtt / 4;
}

}  // namespace

void on_grant(State& s, const CadenceParams& p, const Event& e, Decision& d) {
  const GrantMessage& g = *e.grant;
  const std::int64_t now = e.now.count;
  const std::int32_t newer = s.seq_known ? seq_distance(g.grant_seq, s.seen_seq) : 1;
  if (newer < 0) return;
  s.seen_seq = g.grant_seq;
  s.seq_known = true;
  s.budget_bytes = g.unscheduled_budget;
  s.budget_at = now;
  s.active_senders = g.active_senders;
  if (g.peer_count_hint != 0) s.peer_count_hint = g.peer_count_hint;
  s.queue_ns = std::uint32_t{g.queue_us} * 1000;
  time_control(s, now, g);
  if (is_void(s, now, g.timestamp_echo_ns)) return;
  s.probes = 0;
  s.unconfirmed = false;

  if (g.revoke) {
    if (s.phase == Phase::closing || s.phase == Phase::idle || !has_backlog(s)) {
      if (s.phase == Phase::closing) enter(s, p, Phase::idle);
      return;
    }
    if (s.phase == Phase::asking) return;
    give_up(s, now);
    enter(s, p, Phase::requesting);
    d.fallback = false;
    d.request = true;
    return;
  }
  if (g.rate_mbps == 0 && !g.hold) {  // confirms that nothing is granted
    if (s.phase == Phase::closing) enter(s, p, Phase::idle);
    return;
  }
  switch (s.phase) {
    case Phase::idle:
      close(s, p, now, d);  // the receiver reserves capacity that was given up
      return;
    case Phase::closing:
    case Phase::asking:
    case Phase::ending:
      return;
    case Phase::fallback:
      if (!has_backlog(s)) {
        close(s, p, now, d);
        return;
      }
      [[fallthrough]];
    case Phase::requesting:
    case Phase::granted:
    case Phase::decaying:
      take_grant(s, p, e, newer == 0, d);
      return;
  }
}

void on_path(State& s, const CadenceParams& p, const Event& e) {
  const PathMessage& m = *e.path;
  const std::int64_t now = e.now.count;
  if (seq_distance(m.seq, s.path_seq) <= 0) return;
  s.path_seq = m.seq;
  if (m.quick_adapt_mbps > 0) {
    cut_path(s, p, now, std::uint64_t{m.quick_adapt_mbps} * 4 / 5);
  } else if (m.alpha_q16 > 0 && now - s.path_cut_at >= p.rtt_ns) {
    const std::uint64_t rate = s.grant_mbps > 0 ? std::min(s.grant_mbps, s.path_mbps) : s.path_mbps;
    cut_path(s, p, now, rate - rate * m.alpha_q16 / (2 * 65536));
  }
}

}  // namespace paceline::cc::cadence
