#include "cc/cadence/cadence.h"

#include <algorithm>

namespace paceline::cc {
namespace {

using State = Cadence::State;
using Phase = Cadence::Phase;

// Beyond the packets' own overhead: RETH (16), immediate (4), padding (3), rounded up.
constexpr std::uint32_t kMessageSlackBytes = 32;
// Grants cannot be older than this. Timestamps wrap after 4.29 s, so older ones are not compared.
constexpr std::int64_t kStampValidNs = 1'000'000'000;
// A short message behind others of its channel may go ahead of them once in so many RTT.
constexpr std::int64_t kAheadRtts = 8;
constexpr std::uint32_t kPathIncrease = 20;      // part of the grant that P grows by per clean RTT
constexpr std::int64_t kProbeMaxNs = 1'000'000;  // longest interval of unanswered REQUESTs...
constexpr unsigned kPatientProbes = 4;           // ... which grows after so many

bool has_backlog(const State& s) { return s.backlog_wire > 0; }
bool waits_for_grant(const State& s) {
  return s.phase == Phase::asking || s.phase == Phase::requesting;
}
bool has_grant(const State& s) { return s.phase == Phase::granted || s.phase == Phase::decaying; }
// The channel waits for the arbiter's answer.
bool asks_start(const State& s) { return s.want_bytes > 0 || s.phase == Phase::asking; }
bool path_limited(const State& s, const CadenceParams& p) { return s.path_mbps < p.link_mbps; }
bool in_start(const State& s) { return s.sent_total < s.start_end; }
std::uint32_t stamp(std::int64_t now_ns) { return static_cast<std::uint32_t>(now_ns); }
std::int32_t since(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b); }
std::uint16_t micros_16(std::int64_t ns) {
  return static_cast<std::uint16_t>(std::clamp<std::int64_t>(ns / 1000, 1, 0xFFFF));
}

// Some of the backlog is not covered by start bytes, or may not be: every wish contains the slack,
// but a reduced answer may not.
bool needs_grant(const State& s) {
  return has_backlog(s) && s.sent_total + s.backlog_wire + kMessageSlackBytes > s.start_end;
}

void enter(State& s, Phase phase) {
  s.phase = phase;
  s.probes = 0;
}

void hold_stamp(State& s, std::int64_t now, bool gave_up) {
  s.stamp_ns = stamp(now);
  s.gave_up = gave_up;
}

// Drops whatever was granted. Called before the REQUEST that says so is filled.
void give_up(State& s, std::int64_t now) {
  s.grant_mbps = 0;
  s.next_mbps = 0;
  s.begin_at = kNeverNanos.count;
  s.grant_seq = 0;
  s.seq_known = false;  // the stamp tells late GRANTs; a receiver may have restarted
  s.limit_total = 0;
  hold_stamp(s, now, true);
}

// Sends the REQUEST with demand 0, repeated until the receiver confirms.
void close(State& s, std::int64_t now, Decision& d) {
  give_up(s, now);
  s.unconfirmed = true;
  enter(s, Phase::closing);
  d.fallback = false;
  d.request = true;
}

// The backlog is gone.
void finish(State& s, std::int64_t now, Decision& d) {
  if (s.asked || s.unconfirmed) {
    close(s, now, d);
  } else {
    enter(s, Phase::idle);  // all left as start bytes: there is nothing to give up
    d.request = false;
  }
}

// U: bytes that a channel with so many bytes to send may have in flight without a grant. All peers
// of the receiver may start together: their starts add up to a BDP. A small backlog may leave at
// once all the same. Above the small size the start falls with the square of the backlog, so that
// one byte more does not suddenly make it wait. Two peers are neighbours in a ring or a pipeline,
// of which one sends; a degree of 1 says that no other host sends.
std::uint64_t start_window(const State& s, const CadenceParams& p, std::uint64_t bytes) {
  constexpr std::uint32_t kFew = 2;
  const std::uint64_t small = std::max(p.small_bytes, p.packet_bytes);
  std::uint64_t window = std::min<std::uint64_t>(bytes, p.most_start_bytes);
  const std::uint32_t peers = peers_of(s.peer_count_hint);
  if (bytes > small && s.degree != 1 && (peers == 0 || peers > kFew)) {
    const std::uint64_t share = peers == 0 ? 0 : p.bdp_bytes / peers;
    window = std::max<std::uint64_t>(share, small * small / bytes * small / bytes);
    window = window / p.packet_bytes * p.packet_bytes;
  }
  if (s.degree > 1) {
    window =
        std::min<std::uint64_t>(window, std::max(p.most_start_bytes / s.degree, p.packet_bytes));
  }
  return window;
}

std::uint32_t start_rate(const State& s, const CadenceParams& p) {
  return s.degree > 1 ? std::max(p.eta_mbps / s.degree, p.min_grant_mbps) : p.link_mbps;
}

// Asks the arbiter for what may leave without a grant, in addition to unacknowledged bytes that
// already did.
void ask_start(State& s, const CadenceParams& p, const Event& e) {
  const std::uint64_t flying = std::min(e.inflight_bytes, s.sent_total);
  const std::uint64_t acked = s.sent_total - flying;
  const std::uint64_t open = s.start_end > acked ? s.start_end - acked : 0;
  const std::uint64_t bytes = s.backlog_wire + std::min(open, flying) + kMessageSlackBytes;
  const std::uint64_t window = start_window(s, p, bytes);
  s.want_bytes = window > open ? static_cast<std::uint32_t>(window - open) : 0;
}

void on_message(State& s, const CadenceParams& p, const Event& e, std::uint64_t bytes) {
  const std::int64_t now = e.now.count;
  if (e.hint_degree != 0) s.degree = e.hint_degree;
  if (!has_backlog(s)) return;
  if (s.phase == Phase::idle || s.phase == Phase::closing) {
    enter(s, Phase::asking);
    s.asked = false;
  }
  if (waits_for_grant(s)) {
    ask_start(s, p, e);
  } else if (s.phase == Phase::fallback) {
    s.request_at = std::min(s.request_at, now);
  } else if (s.phase == Phase::granted && message_wire_bytes(p, bytes) <= p.small_bytes &&
             s.backlog_wire > bytes &&
             micros(now) - s.started_us >= micros(kAheadRtts * p.rtt_ns)) {
    // A short message behind others may send its bytes on top of the grant. The queue pairs of a
    // channel take turns, hence twice its size.
    s.want_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        message_wire_bytes(p, 2 * bytes) + kMessageSlackBytes, p.most_start_bytes));
  }
}

void on_idle(State& s, const Event& e, Decision& d) {
  s.want_bytes = 0;
  s.start_end = std::min(s.start_end, s.sent_total);
  if (waits_for_grant(s) || has_grant(s)) finish(s, e.now.count, d);
}

void on_share(State& s, const CadenceParams& p, const Event& e, Decision& d) {
  const UplinkShare& share = *e.share;
  s.share_mbps = share.rate_mbps;
  s.cap_mbps = share.cap_mbps;
  s.spacing_us = micros_16(share.request_spacing_ns);
  if (share.answers_start && asks_start(s)) {
    s.want_bytes = 0;
    if (share.start_bytes > 0) {
      s.start_end = std::max(s.start_end, s.sent_total) + share.start_bytes;
      s.started_us = micros(e.now.count);
      // Start bytes also widen the ceiling of a running grant.
      if (s.phase == Phase::granted) s.limit_total += share.start_bytes;
    }
    if (s.phase == Phase::asking) {
      enter(s, Phase::requesting);
      s.request_at = e.now.count + 8 * p.rtt_ns;  // if the start bytes do not suffice after all
    }
    if (s.phase == Phase::granted && share.start_bytes > 0) d.request = true;
  }
  const bool scheduled = s.phase == Phase::granted || (s.phase == Phase::requesting && s.asked);
  if (share.announce && scheduled) d.request = true;
}

void set_path(State& s, const CadenceParams& p, std::int64_t now, std::uint64_t rate) {
  s.path_mbps = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(rate, std::min(p.path_min_mbps, p.link_mbps), p.link_mbps));
  s.path_cut_at = now;
  s.path_step_at = now + p.rtt_ns;
}

// Once for every round trip without congestion.
void grow_path(State& s, const CadenceParams& p, std::int64_t now) {
  while (path_limited(s, p) && now >= s.path_step_at) {
    s.path_step_at += p.rtt_ns;
    const std::uint32_t basis = s.grant_mbps > 0 ? s.grant_mbps : p.link_mbps;
    s.path_mbps += basis / kPathIncrease + 1;
    // Well above the grant it is not a constraint any more.
    if (s.path_mbps >= std::uint64_t{basis} + basis / 4) s.path_mbps = p.link_mbps;
    s.path_mbps = std::min(s.path_mbps, p.link_mbps);
  }
}

// The unloaded round trip. REQUEST and GRANT overtake data, so their round trip contains no queue.
// It contains the time that the hosts' software takes at present, which is not congestion of the
// path. A path shorter than T gets more room than it needs; one fast answer of a slow host takes
// none away.
std::int64_t unloaded_rtt(const State& s, const CadenceParams& p) {
  return std::max<std::int64_t>(p.rtt_ns, s.control_rtt_ns);
}

// A packet sent `ago_ns` ago found the path congested. If it was sent before the last cut, it says
// nothing about the path since. Returns whether P was cut.
bool cut_path(State& s, const CadenceParams& p, std::int64_t now, std::int64_t ago_ns) {
  if (now - s.path_cut_at < ago_ns) return false;
  grow_path(s, p, now);
  const std::uint64_t rate = s.grant_mbps > 0 ? std::min(s.grant_mbps, s.path_mbps) : s.path_mbps;
  set_path(s, p, now, rate * 7 / 10);
  return true;
}

// Adjusts P by delay. Returns whether P was cut.
bool take_round_trip(State& s, const CadenceParams& p, std::int64_t now, std::int64_t rtt_ns) {
  if (s.phase == Phase::fallback || p.path_target_ns == 0) return false;
  const std::int64_t queued = rtt_ns - unloaded_rtt(s, p);
  if (queued > p.path_target_ns && cut_path(s, p, now, rtt_ns)) return true;
  if (queued > 0 && path_limited(s, p)) s.path_step_at = std::max(s.path_step_at, now + p.rtt_ns);
  return false;
}

void on_loss(State& s, const CadenceParams& p, const Event& e) {
  cut_path(s, p, e.now.count, p.rtt_ns);
  if (s.phase == Phase::idle || s.phase == Phase::closing) {
    on_message(s, p, e, std::max<std::uint64_t>(e.lost_bytes, 1));
  }
}

// W: bytes that a rate may have in flight.
std::uint64_t path_window(const State& s, const CadenceParams& p, std::uint32_t rate) {
  // No more slack than half a round trip: this bounds the queue at a port (I3).
  const std::uint64_t slack = std::min<std::uint64_t>(p.slack_bytes, bytes_at(rate, p.rtt_ns / 2));
  // At the slowest rates a round trip holds less than a byte; one packet may still go.
  return std::max<std::uint64_t>(bytes_at(rate, unloaded_rtt(s, p)) + slack, 1);
}

// Grants that answer a REQUEST older than the last give-up were computed for a sender that still
// held its rate; the receiver has released that capacity since.
bool is_void(const State& s, std::int64_t now, std::uint32_t stamp_echo) {
  const std::int32_t age = since(stamp(now), s.stamp_ns);
  return s.gave_up && age >= 0 && age < kStampValidNs && since(stamp_echo, s.stamp_ns) < 0;
}

void take_grant(State& s, const CadenceParams& p, const Event& e, bool repeated, Decision& d) {
  const GrantMessage& g = *e.grant;
  const std::int64_t now = e.now.count;
  const std::int64_t lease_ns = std::int64_t{g.lease_us} * 1000;
  const bool in_force = s.phase == Phase::granted && s.grant_seq != 0;
  const std::uint32_t before = in_force ? s.grant_mbps : 0;
  const std::uint32_t rate = g.hold ? 0 : g.rate_mbps;

  s.lease_end = repeated && in_force ? std::max(s.lease_end, now + lease_ns) : now + lease_ns;
  s.limit_total = std::max(s.limit_total, extend_total(s.sent_total, g.limit_total));
  s.refresh_us = micros_16(std::max<std::int64_t>(lease_ns / 2, p.rtt_ns));
  if (!repeated || !in_force) {
    const bool waits = rate > before && g.effective_delay_us > 0;
    s.grant_mbps = waits ? before : rate;
    s.next_mbps = waits ? rate : 0;
    s.begin_at = waits ? now + std::int64_t{g.effective_delay_us} * 1000 : kNeverNanos.count;
    hold_stamp(s, now, false);
    // A decrease frees capacity only once it is confirmed, so it is confirmed at once, as is the
    // end of a decay or of the fallback. Any other increase is confirmed by the next REQUEST.
    if (rate < before || s.phase == Phase::decaying || s.phase == Phase::fallback) d.request = true;
  } else if (since(g.timestamp_echo_ns, s.stamp_ns) < 0) {
    d.request = true;  // repeated because the confirmation got lost
  }
  s.grant_seq = g.grant_seq;
  if (s.phase != Phase::granted) enter(s, Phase::granted);
  s.probes = 0;
  d.fallback = false;
  s.request_at = now + std::int64_t{std::max(s.refresh_us, s.spacing_us)} * 1000;
}

void time_control(State& s, std::int64_t now, const GrantMessage& g) {
  const std::uint32_t away = stamp(now) - g.timestamp_echo_ns;
  if (g.timestamp_echo_ns == 0 || away >= kStampValidNs || away <= g.receiver_hold_ns) return;
  const std::uint32_t rtt = away - g.receiver_hold_ns;
  s.control_rtt_ns +=
      static_cast<std::uint32_t>(since(rtt, s.control_rtt_ns) / (s.control_rtt_ns == 0 ? 1 : 4));
}

void on_grant(State& s, const CadenceParams& p, const Event& e, Decision& d) {
  const GrantMessage& g = *e.grant;
  const std::int64_t now = e.now.count;
  const std::int32_t newer = s.seq_known ? seq_distance(g.grant_seq, s.seen_seq) : 1;
  if (newer < 0) return;
  s.seen_seq = g.grant_seq;
  s.seq_known = true;
  if (g.peer_count_hint != 0) s.peer_count_hint = g.peer_count_hint;
  time_control(s, now, g);
  if (is_void(s, now, g.timestamp_echo_ns)) return;
  s.probes = 0;
  s.unconfirmed = false;

  if (g.rate_mbps == 0 && !g.hold) {  // nothing is granted
    if (s.phase == Phase::closing) enter(s, Phase::idle);
    // The receiver has forgotten the channel: ask again.
    if (!g.revoke || s.phase == Phase::idle || s.phase == Phase::asking || !has_backlog(s)) return;
    give_up(s, now);
    enter(s, Phase::requesting);
    d.fallback = false;
    d.request = true;
    return;
  }
  if (s.phase == Phase::closing || s.phase == Phase::asking) return;
  if (s.phase == Phase::idle || (s.phase == Phase::fallback && !has_backlog(s))) {
    close(s, now, d);  // the receiver reserves capacity that was given up
  } else {
    take_grant(s, p, e, newer == 0, d);
  }
}

// A REQUEST timer (retry, refresh, probe) is running.
bool timer_runs(const State& s) {
  if (s.phase == Phase::idle || s.phase == Phase::asking) return false;
  return s.phase != Phase::fallback || has_backlog(s);
}

std::int64_t request_interval(const State& s, const CadenceParams& p) {
  if (s.phase == Phase::granted) return std::int64_t{std::max(s.refresh_us, s.spacing_us)} * 1000;
  const std::int64_t first = (s.phase == Phase::fallback ? 8 : 2) * p.rtt_ns;
  const unsigned patient = s.phase == Phase::fallback ? 0 : kPatientProbes;
  const unsigned doublings = s.probes > patient ? std::min(s.probes - patient, 20U) : 0;
  return std::min(first << doublings, std::max(kProbeMaxNs, first));
}

// Does everything that depends on time alone.
void advance(State& s, const CadenceParams& p, std::int64_t now, Decision& d) {
  if (s.phase == Phase::granted && now >= s.lease_end) {
    enter(s, Phase::decaying);
    s.next_mbps = 0;
    s.begin_at = kNeverNanos.count;
    d.request = true;
  }
  if (now >= s.begin_at) {
    s.grant_mbps = s.next_mbps;
    s.next_mbps = 0;
    s.begin_at = kNeverNanos.count;
  }
  while (s.phase == Phase::decaying && now >= s.lease_end && s.grant_mbps > p.fallback_mbps) {
    s.grant_mbps = std::max(s.grant_mbps / 2, p.fallback_mbps);
    s.lease_end += p.rtt_ns;
  }
  grow_path(s, p, now);

  if (!timer_runs(s) || now < s.request_at) return;
  d.request = true;
  if (s.phase == Phase::granted || (s.phase == Phase::requesting && !s.asked)) return;
  if (s.probes < 255) ++s.probes;
  const bool unanswered = s.probes > p.probe_limit;
  if (s.phase == Phase::closing && unanswered) {
    enter(s, Phase::idle);  // the lease releases what the receiver still reserves
    d.request = false;
  } else if (unanswered && s.phase != Phase::fallback && s.grant_mbps <= p.fallback_mbps) {
    give_up(s, now);
    enter(s, Phase::fallback);
  }
}

void start(State& s, const CadenceParams& p, const Event& e) {
  s.share_mbps = s.cap_mbps = s.path_mbps = p.link_mbps;
  s.started_us = micros(e.now.count - kAheadRtts * p.rtt_ns);
  s.path_cut_at = e.now.count - p.rtt_ns;
  s.refresh_us = micros_16(p.lease_min_ns / 4);
  s.start_end = e.sent_total;
  s.begin_at = kNeverNanos.count;
  if (e.handover != nullptr && e.handover->rate.bps > 0) {
    // A live connection continues no faster than before; the path loop raises the rate within a few
    // RTT.
    set_path(s, p, e.now.count, e.handover->rate.bps / 1'000'000);
  }
  s.peer_count_hint = e.peer_count_hint;
  enter(s, Phase::idle);
}

Limiter limiter_of(const State& s, const CadenceParams& p, std::uint32_t wish, std::uint32_t rate,
                   std::uint32_t share, std::uint64_t ceiling) {
  if (!has_backlog(s)) return Limiter::application;
  if (wish == 0) return Limiter::grant;
  if (rate >= p.link_mbps) return Limiter::port;
  if (s.sent_total + p.packet_bytes > ceiling) {
    return s.phase == Phase::requesting ? Limiter::grant : Limiter::credit;
  }
  if (s.path_mbps == rate) return Limiter::path;
  return share == rate ? Limiter::uplink : Limiter::grant;
}

void decide(const State& s, const CadenceParams& p, std::int64_t now, Decision& d) {
  const bool fallback = s.phase == Phase::fallback;
  // Start bytes that waited until the lease ran out follow at the decaying rate (I5).
  const bool start = in_start(s) && (s.phase == Phase::requesting || s.phase == Phase::granted);
  const std::uint32_t granted = has_grant(s) ? s.grant_mbps : fallback ? p.fallback_mbps : 0;
  const std::uint32_t wish = start ? std::max(start_rate(s, p), granted) : granted;
  d.ceiling = has_grant(s) ? std::max(s.limit_total, s.start_end) : s.start_end;
  if (fallback) d.ceiling = kUnlimited;
  d.fallback = fallback;
  d.urgent = start;
  // After the start the rate falls to the grant, or to 0: below a ceiling a pacer would gather
  // credit.
  const bool slows = start && (has_grant(s) ? wish > granted : needs_grant(s));
  d.wake_bytes = slows ? s.start_end - s.sent_total : kUnlimited;
  // The arbiter shares granted rates; start bytes have their own room on the uplink.
  const std::uint32_t share = start ? p.link_mbps : s.share_mbps;
  const std::uint32_t rate = std::min({wish, share, s.path_mbps});
  d.rate = rate_from_mbps(rate);
  d.limiter = limiter_of(s, p, wish, rate, share, d.ceiling);
  // Start bytes have a ceiling of their own, at most a BDP, and the arbiter's room.
  const bool windowed = rate > 0 && !start && !fallback;
  d.window_bytes = windowed ? path_window(s, p, rate) : kUnlimited;

  std::int64_t wake = kNeverNanos.count;
  if (timer_runs(s)) wake = std::min(wake, s.request_at);
  if (s.phase == Phase::granted) {
    wake = std::min({wake, s.lease_end, s.begin_at});
  }
  if (s.phase == Phase::decaying && s.grant_mbps > p.fallback_mbps) {
    wake = std::min(wake, s.lease_end);
  }
  if (path_limited(s, p) && has_backlog(s)) wake = std::min(wake, s.path_step_at);
  d.wake_at = Nanos{wake == kNeverNanos.count ? wake : std::max(wake, now + 1)};
  d.timed = wake != kNeverNanos.count;
}

}  // namespace

void Cadence::on_event(State& s, const Params& p, const Event& e, Decision& d) {
  const std::int64_t now = e.now.count;
  d.request = false;
  // A late event may find a timer that is due: then everything is looked at.
  if (e.signal == Signal::ack && d.wake_at > e.now) {
    // Only P can change here: timers keep their time, and the byte count continues.
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
    case Signal::message:
      on_message(s, p, e, e.message_bytes);
      break;
    case Signal::idle:
      on_idle(s, e, d);
      break;
    case Signal::share:
      on_share(s, p, e, d);
      break;
    case Signal::grant:
      on_grant(s, p, e, d);
      break;
    case Signal::nack:
    case Signal::timeout:
      on_loss(s, p, e);
      break;
    case Signal::start:
      on_message(s, p, e, e.backlog_bytes);
      break;
    case Signal::ack:
      if (e.rtt_ns != 0) take_round_trip(s, p, now, e.rtt_ns);
      break;
    case Signal::tick:
      if (e.peer_count_hint != 0) s.peer_count_hint = e.peer_count_hint;
      break;
    default:  // cnp, notice: not asked for
      break;
  }

  // The work disappeared without being sent: its queue pair was destroyed.
  const bool open = s.phase == Phase::requesting || has_grant(s);
  if (d.request && open && !has_backlog(s)) finish(s, now, d);
  // The start bytes alone do not finish the backlog.
  if (s.phase == Phase::requesting && !s.asked && !asks_start(s) && needs_grant(s))
    d.request = true;
  if (d.request) {
    if (has_backlog(s)) s.asked = true;
    s.request_at = now + request_interval(s, p);
  }
  decide(s, p, now, d);
}

void Cadence::fill_request(State& s, const Params& p, const Event& e, RequestMessage& r) {
  r.req_seq = ++s.req_seq;
  r.grant_echo = s.grant_seq;
  r.sent_total = s.sent_total & kTotalMask;
  r.unscheduled_total = std::max(s.start_end, s.sent_total) & kTotalMask;
  r.demand_bytes = s.backlog_wire;
  r.tx_cap_mbps = s.cap_mbps >= p.link_mbps ? kCapUnlimited : std::max(s.cap_mbps, 1U);
  r.timestamp_ns = stamp(e.now.count);
  r.hint = s.degree != 0;
  r.hint_degree = s.degree;
}

UplinkWant Cadence::uplink_want(const State& s, const Params& p) {
  UplinkWant w;
  w.start_bytes = s.want_bytes;
  w.asks_start = asks_start(s);
  const std::uint64_t covered =
      std::max(s.start_end, s.sent_total) + s.want_bytes + kMessageSlackBytes;
  w.active = has_backlog(s) && s.phase != Phase::idle && s.phase != Phase::closing &&
             (!waits_for_grant(s) || s.sent_total + s.backlog_wire > covered);
  w.awaits_grant = w.active && waits_for_grant(s);
  if (s.phase == Phase::fallback) {
    w.limit_mbps = p.fallback_mbps;
  } else if (has_grant(s)) {
    w.limit_mbps = std::min(std::max(s.grant_mbps, s.next_mbps), s.path_mbps);
  }
  if (w.active) {
    w.weight = static_cast<std::uint8_t>(favour(p, s.backlog_wire));
    w.bulk = s.backlog_wire >= bulk_bytes(p);
  }
  return w;
}

}  // namespace paceline::cc
