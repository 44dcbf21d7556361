#include "cc/cadence/state_helpers.h"

#include <algorithm>

namespace paceline::cc::cadence {
namespace {

// "The receiver served only me" is believed this long by a bulk message that starts.
constexpr std::int64_t kQuietRtts = 32;

std::uint32_t start_budget(const State& s, const CadenceParams& p, std::int64_t now) {
  const std::int64_t doublings = (now - s.budget_at) / (kBudgetRtts * p.rtt_ns);
  if (doublings >= 16) return p.most_start_bytes;
  const std::uint64_t grown = std::uint64_t{s.budget_bytes} << doublings;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(grown, p.most_start_bytes));
}

// The start of a message that takes more than a round trip. The larger the message, the less a
// round trip matters to it, and the more a full start costs other senders. If the receiver has told
// how many peers have connections to it, all of them may start together: their starts add up to
// kappa BDP. Few peers get a BDP each; two peers are the neighbours in a ring or a pipeline, of
// which one sends. Many peers, with less than a packet each, get no start and ask first. For a
// message little larger than a round trip, the start falls with the square of the size, so that one
// byte more does not make it wait. If the receiver has told nothing, the start falls with the
// inverse of the size, down to the bulk start.
std::uint64_t bulk_start(const State& s, const CadenceParams& p, std::uint64_t wire) {
  constexpr std::uint32_t kFew = 2;
  const std::uint64_t small = std::max(p.small_bytes, p.packet_bytes);
  const std::uint64_t inverse = small * small / wire;
  const std::uint32_t peers = peers_of(s.peer_count_hint);
  if (peers == 0) return std::max<std::uint64_t>(inverse, p.bulk_start_bytes);
  if (peers <= kFew) return p.most_start_bytes;
  const std::uint64_t share =
      std::max<std::uint64_t>(p.budget_bytes / peers, inverse * small / wire);
  return share / p.packet_bytes * p.packet_bytes;
}

std::uint32_t start_rate(const State& s, const CadenceParams& p) {
  return s.hint_degree > 1 ? std::max(p.eta_mbps / s.hint_degree, p.min_grant_mbps) : p.link_mbps;
}

}  // namespace

void enter(State& s, const CadenceParams& p, Phase phase) {
  s.phase = phase;
  s.probes = 0;
  s.probe_ns = first_probe(p, phase);
}

void give_up(State& s, std::int64_t now) {
  s.grant_mbps = 0;
  s.next_mbps = 0;
  s.held = false;
  s.grant_seq = 0;
  s.limit_total = 0;
  s.gave_up_at = now;
}

void close(State& s, const CadenceParams& p, std::int64_t now, Decision& d) {
  give_up(s, now);
  s.unconfirmed = true;
  enter(s, p, Phase::closing);
  d.fallback = false;
  d.request = true;
}

std::uint32_t start_wish(const State& s, const CadenceParams& p, std::int64_t now,
                         std::uint64_t message) {
  const std::uint64_t wire = message_wire_bytes(p, message) + kMessageSlackBytes;
  const std::uint32_t budget = std::max(start_budget(s, p, now), p.packet_bytes);
  const bool quiet = s.active_senders <= 1 && now - s.budget_at < kQuietRtts * p.rtt_ns;
  const std::uint64_t small = std::max(p.small_bytes, p.packet_bytes);
  std::uint64_t wish = wire;
  if (wire > small && s.phase != Phase::granted) {
    wish = std::min<std::uint64_t>(wire, quiet ? p.most_start_bytes : bulk_start(s, p, wire));
  }
  wish = std::min<std::uint64_t>(wish, budget);
  if (s.hint_degree > 1) {
    wish = std::min<std::uint64_t>(wish, std::max(budget / s.hint_degree, p.packet_bytes));
  }
  const std::uint64_t open = (in_start(s) ? s.start_end - s.sent_total : 0) + s.want_bytes;
  if (open + wish > budget) wish = budget > open ? budget - open : 0;
  return static_cast<std::uint32_t>(wish);
}

bool timer_runs(const State& s) {
  if (s.down) return false;
  switch (s.phase) {
    case Phase::idle:
    case Phase::asking:
      return false;
    case Phase::fallback:
      return has_backlog(s);
    case Phase::requesting:
    case Phase::granted:
    case Phase::ending:
    case Phase::decaying:
    case Phase::closing:
      return true;
  }
  return false;
}

void decide(const State& s, const CadenceParams& p, std::int64_t now, Decision& d) {
  const bool start = in_start(s) && s.phase != Phase::decaying && s.phase != Phase::fallback;
  std::uint32_t wish = 0;  // by grant or start
  d.window_bytes = kUnlimited;
  d.ceiling = s.sent_total;
  d.wake_bytes = kUnlimited;
  d.fallback = false;
  d.urgent = start;
  d.limiter = has_backlog(s) ? Limiter::grant : Limiter::application;
  switch (s.phase) {
    case Phase::idle:
    case Phase::closing:
    case Phase::asking:
      break;
    case Phase::requesting:
      wish = start ? start_rate(s, p) : 0;
      d.ceiling = s.start_end;
      // Then the rate is 0, not line rate below a ceiling: a pacer must not gather credit.
      if (start && needs_grant(s)) d.wake_bytes = s.start_end - s.sent_total;
      break;
    case Phase::granted:
      wish = start ? std::max(start_rate(s, p), s.grant_mbps) : s.grant_mbps;
      d.ceiling = std::max(s.limit_total, s.start_end);
      if (wish > s.grant_mbps) d.wake_bytes = s.start_end - s.sent_total;
      if (may_end(s, p)) {
        const std::uint64_t last = last_round_trip(s, p) / 8000;
        d.wake_bytes = s.backlog_wire > last ? s.backlog_wire - last : 0;
      }
      break;
    case Phase::ending:
      wish = s.grant_mbps;
      d.ceiling = s.end_total;
      break;
    case Phase::decaying:  // start bytes that waited this long follow at the decaying rate (I5)
      wish = s.grant_mbps;
      d.ceiling = std::max(s.limit_total, s.start_end);
      break;
    case Phase::fallback:
      wish = p.fallback_mbps;
      d.ceiling = kUnlimited;
      d.fallback = true;
      break;
  }
  // The arbiter's share is about granted rates; start bytes have their own room on the uplink.
  const std::uint32_t share = start ? p.link_mbps : s.share_mbps;
  const std::uint32_t rate = s.down ? 0 : std::min({wish, share, s.path_mbps});
  d.rate = rate_from_mbps(rate);
  if (has_backlog(s) && wish > 0) {
    if (s.down || rate >= p.link_mbps) {
      d.limiter = Limiter::port;
    } else if (s.sent_total + p.packet_bytes > d.ceiling) {
      d.limiter = s.phase == Phase::requesting ? Limiter::grant : Limiter::credit;
    } else if (s.path_mbps == rate) {
      d.limiter = Limiter::path;
    } else if (share == rate) {
      d.limiter = Limiter::uplink;
    }
  }

  // Start bytes have a ceiling of their own, at most a BDP, and the arbiter's room. What is under
  // way then may wait at a port that no GRANT has told of yet: it is no reason to wait, too.
  if (rate > 0 && !start && s.phase != Phase::fallback) {
    d.window_bytes = path_window(s, p, now, rate);
  }

  std::int64_t wake = kNeverNanos.count;
  if (timer_runs(s)) wake = std::min(wake, s.request_at);
  if (s.phase == Phase::granted) {
    wake = std::min(wake, s.lease_end);
    if (s.next_mbps > 0) wake = std::min(wake, s.next_at);
  }
  if (s.phase == Phase::decaying && s.grant_mbps > p.fallback_mbps) {
    wake = std::min(wake, s.decay_at);
  }
  if (s.path_limited && has_backlog(s)) wake = std::min(wake, s.path_step_at);
  d.wake_at = Nanos{wake == kNeverNanos.count ? wake : std::max(wake, now + 1)};
  d.timed = wake != kNeverNanos.count;
}

}  // namespace paceline::cc::cadence
