#include "cc/cadence/cadence.h"

#include <algorithm>

#include "cc/cadence/parts.h"

namespace paceline::cc {
namespace {

using namespace cadence;

// A sender that has its receiver to itself keeps its grant this long after its last byte.
constexpr std::int64_t kLingerRtts = 8;

std::uint32_t stamp(std::int64_t now_ns) { return static_cast<std::uint32_t>(now_ns); }
std::int32_t stamp_distance(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b);
}
std::uint32_t mbps(Rate r) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(r.bps / 1'000'000, kCapUnlimited));
}

// Drops whatever was granted. Called before the REQUEST that says so is filled.
void give_up(State& s, std::int64_t now) {
  s.grant_mbps = 0;
  s.raise_mbps = 0;
  s.held = false;
  s.grant_seq = 0;
  s.limit_total = 0;
  s.gave_up_at = now;
}

// Grants that answer a REQUEST older than the last give-up were computed for a sender that still
// held its rate; the receiver has released that capacity since.
bool is_void(const State& s, std::int64_t now, std::uint32_t stamp_echo) {
  if (s.gave_up_at == 0 || now - s.gave_up_at > kStampValidNs) return false;
  return stamp_distance(stamp_echo, stamp(s.gave_up_at)) < 0;
}

std::uint32_t first_probe(const CadenceParams& p, Phase phase) {
  return static_cast<std::uint32_t>(phase == Phase::fallback ? 8 * p.rtt_ns : 2 * p.rtt_ns);
}

void enter(State& s, const CadenceParams& p, Phase phase) {
  s.phase = phase;
  s.probes = 0;
  s.probe_ns = first_probe(p, phase);
}

void ask_start(State& s, std::uint32_t bytes) {
  s.want_bytes += bytes;
  s.asks_start = true;
}

// The REQUEST with demand 0, repeated until the receiver confirms.
void close(State& s, const CadenceParams& p, std::int64_t now, Decision& d) {
  give_up(s, now);
  s.unconfirmed = true;
  enter(s, p, Phase::closing);
  d.fallback = false;
  d.request = true;
}

void on_message(State& s, const CadenceParams& p, const Event& e, std::uint64_t bytes) {
  const std::int64_t now = e.now.count;
  if (e.hint_kind != 0 || e.hint_degree != 0) {
    s.hint_kind = e.hint_kind;
    s.hint_degree = e.hint_degree;
    s.hint_collective = e.hint_collective;
  }
  if (!has_backlog(s) || s.down) return;
  switch (s.phase) {
    case Phase::idle:
    case Phase::closing:
      enter(s, p, Phase::asking);
      s.start_end = s.sent_total;
      s.asked = false;
      s.want_bytes = 0;
      ask_start(s, start_wish(s, p, now, bytes));
      return;
    case Phase::asking:
    case Phase::requesting:
      ask_start(s, start_wish(s, p, now, bytes));
      break;
    case Phase::granted:
      // A short message behind others: once per start window the channel may send its bytes on
      // top of the grant, charged like any start.
      // Near line rate there is nothing to gain by it, and the receiver would have to make room.
      if (message_wire_bytes(p, bytes) <= p.small_bytes && s.backlog_wire > bytes &&
          now - s.started_at >= kBudgetRtts * p.rtt_ns &&
          s.grant_mbps < p.eta_mbps - p.eta_mbps / 8) {
        // The queue pairs of a channel take turns, hence twice its size.
        ask_start(s, start_wish(s, p, now, 2 * bytes));
      }
      break;
    case Phase::decaying:
      return;
    case Phase::fallback:
      s.request_at = std::min(s.request_at, now);
      return;
  }
  // Tell the receiver when the demand it knows is about to look finished, at most once per RTT.
  const std::uint64_t told = s.told_final > s.sent_total ? s.told_final - s.sent_total : 0;
  if (s.phase == Phase::granted && s.backlog_wire > 2 * told) {
    s.request_at = std::min(s.request_at, std::max(now, s.requested_at + p.rtt_ns));
  }
}

void on_idle(State& s, const CadenceParams& p, const Event& e, Decision& d) {
  const std::int64_t now = e.now.count;
  s.want_bytes = 0;
  s.asks_start = false;
  s.start_end = std::min(s.start_end, s.sent_total);
  switch (s.phase) {
    case Phase::idle:
    case Phase::closing:
    case Phase::fallback:
      return;
    case Phase::granted:
      // Nobody else wants the port: the next message of a stream need not ask again. Whoever comes
      // makes the receiver lower this grant, which ends the wait (see on_event).
      if (s.active_senders <= 1 && !s.held) {
        s.request_at = std::min(s.lease_end, now + kLingerRtts * p.rtt_ns);
        return;
      }
      [[fallthrough]];
    case Phase::asking:
    case Phase::requesting:
    case Phase::decaying:
      if (!s.asked && !s.unconfirmed) {  // all left as start bytes: there is nothing to give up
        enter(s, p, Phase::idle);
        return;
      }
      close(s, p, now, d);
      return;
  }
}

void on_share(State& s, const CadenceParams& p, const Event& e, Decision& d) {
  const UplinkShare& share = *e.share;
  s.share_mbps = mbps(share.rate);
  s.cap_mbps = mbps(share.cap);
  s.spacing_ns = share.request_spacing_ns;
  if (share.answers_start && s.asks_start) {
    const std::uint64_t begin = std::max(s.start_end, s.sent_total);
    s.want_bytes = 0;
    s.asks_start = false;
    if (share.start_bytes > 0) {
      s.start_end = begin + share.start_bytes;
      s.unscheduled_total += share.start_bytes;
      s.started_at = e.now.count;
      // Charged bytes widen the ceiling of a running grant, too.
      if (s.phase == Phase::granted) s.limit_total += share.start_bytes;
    }
    if (s.phase == Phase::asking) enter(s, p, Phase::requesting);
    if (s.phase == Phase::requesting || share.start_bytes > 0) d.request = has_backlog(s);
  }
  const bool scheduled = s.phase == Phase::granted || (s.phase == Phase::requesting && s.asked);
  if (share.announce && scheduled) d.request = true;
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
    // A newcomer that has not begun yet goes on waiting for its turn, at whatever rate: else the
    // first change of all shares would let all that wait begin at the same time.
    const bool waits = in_force && s.raise_mbps > 0 && s.raise_at > now;
    s.raise_mbps = 0;
    if (rate > before && (g.effective_delay_us > 0 || waits)) {
      s.grant_mbps = before;
      s.raise_mbps = rate;
      if (g.effective_delay_us > 0) {
        s.raise_at = now + std::int64_t{g.effective_delay_us} * 1000;
      }
    } else {
      s.grant_mbps = rate;
    }
    s.taken_stamp = stamp(now);
    // A decrease frees capacity only when it is confirmed: at once, and so is the end of a decay or
    // of the fallback. Any other increase is confirmed by the next REQUEST, whenever that is.
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

// REQUEST and GRANT overtake data: their round trip is that of the empty path and of the hosts.
void time_control(State& s, std::int64_t now, const GrantMessage& g) {
  const std::uint32_t away = stamp(now) - g.timestamp_echo_ns;
  if (g.timestamp_echo_ns == 0 || away >= kStampValidNs || away <= g.receiver_hold_ns) return;
  const std::uint32_t rtt = away - g.receiver_hold_ns;
  s.control_rtt_ns =
      s.control_rtt_ns == 0 ? rtt : s.control_rtt_ns - s.control_rtt_ns / 4 + rtt / 4;
}

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
  if (g.crowd != 0) s.crowd = g.crowd;
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

void on_loss(State& s, const CadenceParams& p, const Event& e) {
  const std::int64_t now = e.now.count;
  if (e.signal == Signal::timeout) {
    cut_path(s, p, now, s.path_mbps / 2);
  } else if (now - s.path_cut_at >= p.rtt_ns) {
    cut_path(s, p, now, std::uint64_t{s.path_mbps} * 7 / 10);
  }
  if (s.phase == Phase::idle || s.phase == Phase::closing) {
    on_message(s, p, e, std::max<std::uint64_t>(e.lost_bytes, 1));
  }
}

// Everything that time alone does.
void advance(State& s, const CadenceParams& p, std::int64_t now, Decision& d) {
  if (s.raise_mbps > 0 && now >= s.raise_at) {
    s.grant_mbps = s.raise_mbps;
    s.raise_mbps = 0;
  }
  if (s.phase == Phase::granted && now >= s.lease_end) {
    enter(s, p, Phase::decaying);
    s.raise_mbps = 0;
    s.decay_at = s.lease_end;
    d.request = true;
  }
  if (s.phase == Phase::decaying) {
    while (now >= s.decay_at && s.grant_mbps > p.fallback_mbps) {
      s.grant_mbps = std::max(s.grant_mbps / 2, p.fallback_mbps);
      s.decay_at += p.rtt_ns;
    }
  }
  grow_path(s, p, now);

  if (!timer_runs(s) || now < s.request_at) return;
  d.request = true;
  if (s.phase == Phase::granted) return;
  if (s.phase == Phase::requesting && !s.asked) {
    s.asked = true;  // the start bytes do not suffice, or the uplink is slow: a grant does no harm
    return;
  }
  if (s.probes < 255) ++s.probes;
  const bool unanswered = s.probes > p.probe_limit;
  if (s.phase == Phase::closing && unanswered) {
    enter(s, p, Phase::idle);  // the lease releases what the receiver still reserves
    d.request = false;
  } else if (unanswered && s.phase != Phase::fallback && s.grant_mbps <= p.fallback_mbps) {
    give_up(s, now);
    enter(s, p, Phase::fallback);
  } else if (s.phase == Phase::fallback || s.probes > 4) {
    s.probe_ns = std::min(2 * s.probe_ns, std::max(p.request_max_ns, first_probe(p, s.phase)));
  }
}

std::int64_t request_interval(const State& s) {
  if (s.phase == Phase::requesting && !s.asked) return 4 * std::int64_t{s.probe_ns};
  return s.phase == Phase::granted ? std::max(s.refresh_ns, s.spacing_ns) : s.probe_ns;
}

void start(State& s, const CadenceParams& p, const Event& e) {
  s.share_mbps = s.cap_mbps = s.path_mbps = p.link_mbps;
  s.budget_bytes = p.small_bytes;
  s.budget_at = e.now.count - (std::int64_t{1} << 40);  // never told
  s.requested_at = e.now.count;
  s.started_at = e.now.count - kBudgetRtts * p.rtt_ns;
  s.path_cut_at = e.now.count - p.rtt_ns;
  s.refresh_ns = static_cast<std::uint32_t>(p.lease_min_ns / 4);
  s.start_end = e.sent_total;
  if (e.handover != nullptr && e.handover->rate.bps > 0) {
    // A live connection goes on no faster than it did; the path loop lifts it within a few RTT.
    cut_path(s, p, e.now.count, mbps(e.handover->rate));
    s.min_rtt_ns = e.handover->min_rtt_ns;
  }
  s.crowd = e.crowd;
  enter(s, p, Phase::idle);
}

}  // namespace

void Cadence::on_event(State& s, const Params& p, const Event& e, Decision& d) {
  const std::int64_t now = e.now.count;
  d.request = false;
  // An event that comes late may find a timer that is due: all is looked at then.
  if (e.signal == Signal::ack && d.wake_at > e.now) {
    // Nothing but P can change: timers keep their time, and what is counted goes on.
    if (d.wake_bytes != kUnlimited) d.wake_bytes -= std::min(d.wake_bytes, e.sent_bytes);
    if (e.rtt_ns == 0 || !take_round_trip(s, p, now, e.rtt_ns)) return;
    s.sent_total = e.sent_total;
    s.backlog_wire = message_wire_bytes(p, e.backlog_bytes);
    decide(s, p, now, d);
    return;
  }
  s.sent_total = e.sent_total;
  s.backlog_wire = message_wire_bytes(p, e.backlog_bytes);
  if (e.signal == Signal::start) start(s, p, e);
  advance(s, p, now, d);

  switch (e.signal) {
    case Signal::start:
      on_message(s, p, e, e.backlog_bytes);
      break;
    case Signal::message:
      on_message(s, p, e, e.message_bytes);
      break;
    case Signal::idle:
      on_idle(s, p, e, d);
      break;
    case Signal::share:
      on_share(s, p, e, d);
      break;
    case Signal::grant:
      on_grant(s, p, e, d);
      break;
    case Signal::path_report:
      on_path(s, p, e);
      break;
    case Signal::nack:
    case Signal::timeout:
      on_loss(s, p, e);
      break;
    case Signal::port_down:
      s.down = true;
      if (s.phase != Phase::idle) {
        s.unconfirmed = true;
        give_up(s, now);
        enter(s, p, Phase::idle);
      }
      s.want_bytes = 0;
      s.asks_start = false;
      d.request = false;
      break;
    case Signal::port_up:
      s.down = false;
      on_message(s, p, e, e.backlog_bytes);
      break;
    case Signal::ack:
      if (e.rtt_ns != 0) take_round_trip(s, p, now, e.rtt_ns);
      break;
    case Signal::tick:
      if (e.crowd != 0) s.crowd = e.crowd;
      break;
    case Signal::cnp:
      break;
  }

  // A REQUEST without demand gives up what is granted.
  if (d.request && !has_backlog(s) && (s.phase == Phase::granted || s.phase == Phase::decaying)) {
    close(s, p, now, d);
  }
  // Backlog beyond the start bytes appeared after a REQUEST that asked for nothing.
  if (s.phase == Phase::requesting && !s.asked && !s.asks_start && needs_grant(s)) d.request = true;
  if (d.request) {
    s.covered = s.phase == Phase::requesting && !s.asked && !needs_grant(s);
    if (has_backlog(s) && !s.covered) s.asked = true;
    s.requested_at = now;
    s.request_at = now + request_interval(s);
  }
  decide(s, p, now, d);
}

void Cadence::fill_request(State& s, const Params& p, const Event& e, RequestMessage& r) {
  std::uint64_t cap = std::min(s.cap_mbps, p.link_mbps);
  if (s.path_limited) cap = std::min(cap, std::uint64_t{s.path_mbps} * 5 / 4);
  r.req_seq = ++s.req_seq;
  r.grant_echo = s.grant_seq;
  r.sent_total = s.sent_total & kTotalMask;
  r.unscheduled_total = s.unscheduled_total & kTotalMask;
  r.demand_bytes = s.backlog_wire;
  r.tx_cap_mbps = s.covered ? kCapNoGrant
                  : cap >= p.link_mbps
                      ? kCapUnlimited
                      : static_cast<std::uint32_t>(std::max<std::uint64_t>(cap, 1));
  r.timestamp_ns = stamp(e.now.count);
  r.hint = s.hint_kind != 0 || s.hint_degree != 0;
  r.hint_degree = s.hint_degree;
  r.hint_kind = s.hint_kind;
  r.hint_collective = s.hint_collective;
  s.told_final = s.sent_total + s.backlog_wire;
}

UplinkWant Cadence::uplink_want(const State& s, const Params& p) {
  UplinkWant w;
  w.start_bytes = s.asks_start ? s.want_bytes : 0;
  w.asks_start = s.asks_start;
  switch (s.phase) {
    case Phase::idle:
    case Phase::closing:
      break;
    case Phase::asking:
    case Phase::requesting:
      w.active =
          has_backlog(s) && s.sent_total + s.backlog_wire > std::max(s.start_end, s.sent_total) +
                                                                s.want_bytes + kMessageSlackBytes;
      w.awaits_grant = w.active;
      break;
    case Phase::granted:
    case Phase::decaying:
      w.active = has_backlog(s);
      w.limit = rate_from_mbps(std::min(std::max(s.grant_mbps, s.raise_mbps), s.path_mbps));
      break;
    case Phase::fallback:
      w.active = has_backlog(s);
      w.limit = rate_from_mbps(p.fallback_mbps);
      break;
  }
  return w;
}

}  // namespace paceline::cc
