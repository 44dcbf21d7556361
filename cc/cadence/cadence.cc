#include "cc/cadence/cadence.h"

#include <algorithm>

#include "cc/cadence/state_helpers.h"

namespace paceline::cc {
namespace {

using namespace cadence;

// A sender that has its receiver to itself keeps its grant this long after its last byte.
constexpr std::int64_t kLingerRtts = 8;

std::uint32_t mbps(Rate r) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(r.bps / 1'000'000, kCapUnlimited));
}

void ask_start(State& s, std::uint32_t bytes) {
  s.want_bytes += bytes;
  s.asks_start = true;
}

// The grant is given up while what is left still leaves at its rate. The REQUEST says that no grant
// is wanted, so that others have the room a round trip sooner than if they heard of the last byte.
void end_ahead(State& s, const CadenceParams& p, std::int64_t now, Decision& d) {
  enter(s, p, Phase::ending);
  s.end_total = s.sent_total + s.backlog_wire + p.packet_bytes;
  s.gave_up_at = now;
  d.request = true;
}

// More is to be sent after all: what is left of the end leaves like start bytes, which are charged,
// and the rest asks.
void resume(State& s, const CadenceParams& p, Decision& d) {
  const std::uint64_t left = s.end_total - std::min(s.end_total, s.sent_total);
  s.unscheduled_total += left;
  s.start_end = s.sent_total + left;
  s.grant_mbps = 0;
  s.grant_seq = 0;
  s.limit_total = 0;
  enter(s, p, Phase::requesting);
  s.asked = true;
  d.request = true;
}

void on_message(State& s, const CadenceParams& p, const Event& e, std::uint64_t bytes,
                Decision& d) {
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
    case Phase::ending:
      resume(s, p, d);
      ask_start(s, start_wish(s, p, now, bytes));
      return;
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
      // No other sender uses the port: the next message of a stream need not ask again. When
      // another sender comes, the receiver lowers this grant, which ends the wait (see on_event).
      if (s.active_senders <= 1 && !s.held) {
        s.request_at = std::min(s.lease_end, now + kLingerRtts * p.rtt_ns);
        return;
      }
      [[fallthrough]];
    case Phase::asking:
    case Phase::requesting:
    case Phase::ending:
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

void on_loss(State& s, const CadenceParams& p, const Event& e, Decision& d) {
  const std::int64_t now = e.now.count;
  if (e.signal == Signal::timeout) {
    cut_path(s, p, now, s.path_mbps / 2);
  } else if (now - s.path_cut_at >= p.rtt_ns) {
    cut_path(s, p, now, std::uint64_t{s.path_mbps} * 7 / 10);
  }
  if (s.phase == Phase::idle || s.phase == Phase::closing) {
    on_message(s, p, e, std::max<std::uint64_t>(e.lost_bytes, 1), d);
  }
}

// Everything that time alone does.
void advance(State& s, const CadenceParams& p, std::int64_t now, Decision& d) {
  if (s.next_mbps > 0 && now >= s.next_at) {
    s.grant_mbps = s.next_mbps;
    s.next_mbps = 0;
  }
  if (s.phase == Phase::granted && now >= s.lease_end) {
    enter(s, p, Phase::decaying);
    if (s.next_mbps > 0) s.grant_mbps = std::min(s.grant_mbps, s.next_mbps);
    s.next_mbps = 0;
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
  if (s.phase == Phase::ending) {  // slower than its grant was: it takes a new one
    give_up(s, now);
    enter(s, p, Phase::requesting);
    return;
  }
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
  if (s.phase == Phase::ending) return 2 * std::int64_t{s.probe_ns};
  return s.phase == Phase::granted ? std::max(s.refresh_ns, s.spacing_ns) : s.probe_ns;
}

void start(State& s, const CadenceParams& p, const Event& e) {
  s.share_mbps = s.cap_mbps = s.path_mbps = p.link_mbps;
  s.budget_bytes = p.most_start_bytes;
  s.budget_at = e.now.count - (std::int64_t{1} << 40);  // never told
  s.requested_at = e.now.count;
  s.started_at = e.now.count - kBudgetRtts * p.rtt_ns;
  s.path_cut_at = e.now.count - p.rtt_ns;
  s.refresh_ns = static_cast<std::uint32_t>(p.lease_min_ns / 4);
  s.start_end = e.sent_total;
  if (e.handover != nullptr && e.handover->rate.bps > 0) {
    // A live connection goes on no faster than it did; the path loop lifts it within a few RTT.
    cut_path(s, p, e.now.count, mbps(e.handover->rate));
  }
  s.peer_count_hint = e.peer_count_hint;
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
      on_message(s, p, e, e.backlog_bytes, d);
      break;
    case Signal::message:
      on_message(s, p, e, e.message_bytes, d);
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
      on_loss(s, p, e, d);
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
      on_message(s, p, e, e.backlog_bytes, d);
      break;
    case Signal::ack:
      if (e.rtt_ns != 0) take_round_trip(s, p, now, e.rtt_ns);
      break;
    case Signal::tick:
      if (e.peer_count_hint != 0) s.peer_count_hint = e.peer_count_hint;
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
  if (at_end(s, p)) end_ahead(s, p, now, d);
  if (d.request) {
    s.covered =
        s.phase == Phase::ending || (s.phase == Phase::requesting && !s.asked && !needs_grant(s));
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
    case Phase::ending:
    case Phase::decaying:
      w.active = has_backlog(s);
      w.limit = rate_from_mbps(std::min(std::max(s.grant_mbps, s.next_mbps), s.path_mbps));
      break;
    case Phase::fallback:
      w.active = has_backlog(s);
      w.limit = rate_from_mbps(p.fallback_mbps);
      break;
  }
  if (w.active) {
    w.weight = static_cast<std::uint8_t>(favour(p, s.backlog_wire));
    w.bulk = s.backlog_wire >= bulk_bytes(p);
  }
  return w;
}

}  // namespace paceline::cc
