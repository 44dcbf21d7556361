#include "cc/eqds/eqds.h"

#include <algorithm>

#include "cc/grants/channel_units.h"

namespace paceline::cc {
namespace {

using EqdsState = Eqds::State;
using EqdsPhase = Eqds::Phase;

// Beyond the packets' own overhead: RETH (16; under selective repeat in each), immediate (4),
// padding (3); and once for all of the demand. More is asked for than is needed, rather than less.
constexpr std::uint32_t kEqdsPacketSlack = 24;
constexpr std::uint32_t kEqdsSlackBytes = 32;
// A change of demand is worth a REQUEST at most twice per round trip, and only while the receiver
// could exhaust the demand that it knows within two round trips.
constexpr std::int64_t kNewsPerRtt = 2;
constexpr std::uint64_t kNewsBdps = 2;

std::uint64_t wire_of(const EqdsParams& p, std::uint64_t payload) {
  return payload +
         (payload + p.mtu_bytes - 1) / p.mtu_bytes * (p.overhead_bytes + kEqdsPacketSlack);
}

bool has_work(const EqdsState& s) { return s.backlog_wire > 0; }
std::uint64_t final_total(const EqdsState& s) {
  return s.sent_total + (has_work(s) ? s.backlog_wire + kEqdsSlackBytes + s.short_bytes : 0);
}
bool lacks_credit(const EqdsState& s) { return final_total(s) > s.limit_total; }

bool has_news(const EqdsState& s, const EqdsParams& p) {
  return final_total(s) > s.told_final &&
         s.told_final <= std::max(s.limit_total, s.sent_total) + kNewsBdps * p.bdp_bytes;
}
std::int64_t news_at(const EqdsState& s, const EqdsParams& p) {
  return s.requested_at + p.rtt_ns / kNewsPerRtt;
}
// When to tell the receiver of changed demand or of a loss.
std::int64_t tell_at(const EqdsState& s, const EqdsParams& p) {
  std::int64_t at = kNeverNanos.count;
  if (has_news(s, p)) at = news_at(s, p);
  if (s.lost) at = std::min(at, s.requested_at + p.rtt_ns);
  return at;
}

// Payload tells too little about many short messages: each is estimated when it is posted. Flushed
// messages, and packets to be sent again, are in the payload.
void estimate_backlog(EqdsState& s, const EqdsParams& p, const Event& e) {
  s.posted_wire -= std::min(s.posted_wire, e.sent_bytes);
  if (e.signal == Signal::message) s.posted_wire += wire_of(p, e.message_bytes);
  const std::uint64_t most = e.backlog_bytes > 0xFFFF'FFFF
                                 ? ~std::uint64_t{0}
                                 : e.backlog_bytes * (1 + p.overhead_bytes + kEqdsSlackBytes);
  s.posted_wire = std::min(s.posted_wire, most);
  s.backlog_wire = e.backlog_bytes == 0 ? 0 : std::max(wire_of(p, e.backlog_bytes), s.posted_wire);
}

void regain_window(EqdsState& s, const EqdsParams& p, std::int64_t now) {
  const std::int64_t span = std::min(now - s.window_at, p.regain_ns);
  const std::uint64_t more = std::uint64_t{p.first_window_bytes} *
                             static_cast<std::uint64_t>(std::max<std::int64_t>(span, 0)) /
                             static_cast<std::uint64_t>(std::max<std::int64_t>(p.regain_ns, 1));
  if (more == 0 && s.window_bytes < p.first_window_bytes) return;  // rounded away: gathers
  s.window_bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(s.window_bytes + more, p.first_window_bytes));
  s.window_at = now;
}

void expect_answer(EqdsState& s, const EqdsParams& p) {
  s.probes = 0;
  s.probe_ns = static_cast<std::uint32_t>(2 * p.rtt_ns);
}

// Work appeared where there was none. speculate: it may go ahead of credit.
void begin(EqdsState& s, const EqdsParams& p, std::int64_t now, bool speculate, Decision& d) {
  expect_answer(s, p);
  s.phase = EqdsPhase::pulling;
  s.probe_at = now + s.probe_ns;
  s.checked_total = ~std::uint64_t{0};
  if (speculate && lacks_credit(s)) {
    regain_window(s, p, now);
    const std::uint64_t held = s.limit_total > s.sent_total ? s.limit_total - s.sent_total : 0;
    const std::uint64_t lacks = final_total(s) - s.sent_total - held;
    s.want_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(lacks, s.window_bytes));
    if (s.want_bytes > 0) {
      s.asks_start = true;
      s.phase = EqdsPhase::asking;
      return;
    }
  }
  d.request = lacks_credit(s) || now >= news_at(s, p);
}

void on_eqds_work(EqdsState& s, const EqdsParams& p, std::int64_t now, bool speculate,
                  Decision& d) {
  if (!has_work(s)) return;
  if (s.phase == EqdsPhase::idle) {
    begin(s, p, now, speculate, d);
  } else if (s.phase == EqdsPhase::fallback) {
    s.probe_at = std::min(s.probe_at, std::max(now, s.requested_at + 8 * p.rtt_ns));
  }
}

void on_eqds_share(EqdsState& s, const Event& e, Decision& d) {
  const UplinkShare& share = *e.share;
  s.cap_mbps = share.cap_mbps;
  if (share.answers_start && s.asks_start) {
    s.asks_start = false;
    s.want_bytes = 0;
    s.limit_total = std::max(s.limit_total, s.sent_total) + share.start_bytes;
    s.unscheduled_total += share.start_bytes;
    s.window_bytes -= std::min(s.window_bytes, share.start_bytes);
    if (s.phase == EqdsPhase::asking) {
      s.phase = EqdsPhase::pulling;
      d.request = has_work(s);
    }
  } else if (share.announce && s.phase == EqdsPhase::pulling && lacks_credit(s)) {
    const std::uint32_t apart =
        s.cap_mbps > s.told_mbps ? s.cap_mbps - s.told_mbps : s.told_mbps - s.cap_mbps;
    d.request = apart > s.told_mbps / 4;
  }
}

void on_eqds_grant(EqdsState& s, const EqdsParams& p, const Event& e, Decision& d) {
  const GrantMessage& g = *e.grant;
  const std::int64_t now = e.now.count;
  if (s.seq_known && static_cast<std::int16_t>(g.grant_seq - s.seen_seq) < 0 && g.revoke) return;
  if (!s.seq_known || static_cast<std::int16_t>(g.grant_seq - s.seen_seq) > 0) {
    s.seen_seq = g.grant_seq;
    s.seq_known = true;
  }
  expect_answer(s, p);
  if (s.phase == EqdsPhase::fallback) {
    s.phase = has_work(s) ? EqdsPhase::pulling : EqdsPhase::idle;
    d.fallback = false;
    d.request = has_work(s);
  }
  if (g.revoke) {
    s.limit_total = std::min(s.limit_total, s.sent_total);
    d.request = d.request || s.phase == EqdsPhase::pulling;
    return;
  }
  s.paced_mbps = g.credit ? 0 : g.rate_mbps;
  // A receiver never grants more than the demand plus its credit for idle senders. A larger total
  // is from before this end forgot its own totals, and is ignored.
  const std::uint64_t most = std::max(s.told_final, final_total(s)) + p.idle_credit_bytes +
                             p.first_window_bytes + 2 * std::uint64_t{p.packet_bytes};
  const std::uint64_t limit = extend_total(s.sent_total, g.limit_total);
  if (limit <= most) s.limit_total = std::max(s.limit_total, limit);
  s.probe_at = now + std::max(std::int64_t{g.lease_us} * 1000, std::int64_t{s.probe_ns});
}

// Everything that time alone does.
void advance_eqds(EqdsState& s, const EqdsParams& p, std::int64_t now, Decision& d) {
  if (!has_work(s)) return;
  if (s.phase == EqdsPhase::pulling) {
    if (now >= tell_at(s, p)) d.request = true;
    if (now < s.probe_at) return;
    if (!lacks_credit(s)) {
      // There is credit for everything, and nothing is left: the estimate is below the real size of
      // the packets.
      if (s.checked_total == s.sent_total) s.short_bytes += p.packet_bytes;
      s.checked_total = s.sent_total;
      s.probe_at = now + 2 * p.rtt_ns;
      if (!lacks_credit(s)) return;
    }
    d.request = true;
    if (s.probes < 255) ++s.probes;
    if (s.probes > p.probe_limit) {
      s.phase = EqdsPhase::fallback;
      s.probe_ns = static_cast<std::uint32_t>(8 * p.rtt_ns);
      s.limit_total = std::max(s.limit_total, s.sent_total);
    } else if (s.probes > 4) {
      s.probe_ns = std::min(2 * s.probe_ns,
                            std::max(p.request_max_ns, static_cast<std::uint32_t>(2 * p.rtt_ns)));
    }
  } else if (s.phase == EqdsPhase::fallback && now >= s.probe_at) {
    d.request = true;
    s.probe_ns = std::min(2 * s.probe_ns,
                          std::max(p.request_max_ns, static_cast<std::uint32_t>(8 * p.rtt_ns)));
  }
}

void decide_eqds(const EqdsState& s, const EqdsParams& p, std::int64_t now, Decision& d) {
  const bool fallback = s.phase == EqdsPhase::fallback;
  d.window_bytes = kUnlimited;
  d.wake_bytes = kUnlimited;
  d.ceiling = fallback ? kUnlimited : s.limit_total;
  d.fallback = fallback;
  d.urgent = false;
  d.limiter = has_work(s) ? Limiter::credit : Limiter::application;
  std::uint32_t rate = p.link_mbps;
  if (s.paced_mbps != 0) rate = std::min(rate, s.paced_mbps);
  if (fallback) rate = p.fallback_mbps;
  d.rate = rate_from_mbps(rate);

  std::int64_t wake = kNeverNanos.count;
  if (has_work(s)) {
    if (fallback || s.phase == EqdsPhase::pulling) wake = s.probe_at;
    if (s.phase == EqdsPhase::pulling && !d.request) wake = std::min(wake, tell_at(s, p));
  }
  d.wake_at = Nanos{wake == kNeverNanos.count ? wake : std::max(wake, now + 1)};
  d.timed = wake != kNeverNanos.count;
}

void start_eqds(EqdsState& s, const EqdsParams& p, const Event& e) {
  s.cap_mbps = s.told_mbps = p.link_mbps;
  s.limit_total = s.told_final = e.sent_total;
  s.requested_at = e.now.count - p.rtt_ns;
  s.window_at = e.now.count;
  s.window_bytes = p.first_window_bytes;
  if (e.handover != nullptr && e.handover->rate.bps > 0) {
    // A live connection continues no faster than before.
    const std::uint64_t kept = bytes_at(e.handover->rate.bps / 1'000'000, p.rtt_ns);
    s.window_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(kept, s.window_bytes));
  }
  expect_answer(s, p);
}

}  // namespace

void Eqds::on_event(State& s, const Params& p, const Event& e, Decision& d) {
  const std::int64_t now = e.now.count;
  d.request = false;
  s.sent_total = e.sent_total;
  estimate_backlog(s, p, e);
  if (e.signal == Signal::start) start_eqds(s, p, e);
  advance_eqds(s, p, now, d);

  switch (e.signal) {
    case Signal::start:
    case Signal::message:
      on_eqds_work(s, p, now, true, d);
      break;
    case Signal::nack:
    case Signal::timeout:
      // Speculation has failed: lost packets, and the rest, wait for credit.
      s.window_bytes = 0;
      s.window_at = now;
      // The receiver counts trimmed bytes itself.
      s.lost = s.lost || e.lost_bytes > e.trimmed_bytes;
      on_eqds_work(s, p, now, false, d);
      break;
    case Signal::idle:
      s.asks_start = false;
      s.want_bytes = 0;
      s.short_bytes = 0;
      if (s.phase != Phase::fallback) s.phase = Phase::idle;
      break;
    case Signal::share:
      on_eqds_share(s, e, d);
      break;
    case Signal::grant:
      on_eqds_grant(s, p, e, d);
      break;
    case Signal::ack:
    case Signal::cnp:
    case Signal::notice:
    case Signal::tick:
      break;
  }
  if (s.phase == Phase::pulling && now >= tell_at(s, p)) d.request = true;
  if (d.request) {
    s.requested_at = now;
    s.probe_at = now + s.probe_ns;
    s.told_final = final_total(s);
  }
  decide_eqds(s, p, now, d);
}

void Eqds::fill_request(State& s, const Params& p, const Event& e, RequestMessage& r) {
  r.req_seq = ++s.req_seq;
  r.grant_echo = s.seen_seq;
  r.sent_total = s.sent_total & kTotalMask;
  r.unscheduled_total = s.unscheduled_total & kTotalMask;
  r.demand_bytes = final_total(s) - s.sent_total;
  r.tx_cap_mbps = s.cap_mbps >= p.link_mbps ? kCapUnlimited : std::max(s.cap_mbps, 1U);
  r.timestamp_ns = static_cast<std::uint32_t>(e.now.count);
  r.lost = s.lost;
  s.lost = false;
  s.told_mbps = s.cap_mbps;
  s.told_final = final_total(s);
}

UplinkWant Eqds::uplink_want(const State& s, const Params&) {
  UplinkWant w;
  w.start_bytes = s.asks_start ? s.want_bytes : 0;
  w.asks_start = s.asks_start;
  w.active = has_work(s);
  return w;
}

}  // namespace paceline::cc
