#include "cc/cadence/receiver/receiver.h"

#include <utility>

#include "cc/param_block.h"

namespace paceline::cc {

using cadence::fault;

namespace {

// A REQUEST that looks old after this long is not late: the sender's numbering has restarted.
constexpr std::int64_t kRestartRtts = 16;
constexpr std::int64_t kLeasePackets = 8;  // a lease outlives this many packets of its rate
constexpr std::int64_t kHoldLeaseMaxNs = 60'000'000;
constexpr std::int64_t kRefreshRtts = 2;

}  // namespace

CadenceReceiver::CadenceReceiver(const CadenceParams& params)
    : params_(params), lease_ns_(params.lease_min_ns) {}

void CadenceReceiver::set_params(const ParamBlock& params) {
  params_ = params.as<CadenceParams>();
  stood_mbps_ = table_.committed();
  stood_active_ = table_.active();
  params_new_ = true;
  dirty_ = true;
}

void CadenceReceiver::list(std::int64_t now, std::uint32_t peer) {
  table_.list(peer);
  if (scan_at_ == kNeverNanos.count) scan_at_ = now + 2 * params_.rtt_ns;
}

void CadenceReceiver::activate(std::int64_t now, std::uint32_t peer) {
  table_.activate(now, peer);
  list(now, peer);
  dirty_ = true;
}

void CadenceReceiver::enqueue(std::int64_t now, std::uint32_t peer) {
  table_.enqueue(now, peer);
  table_.push_grant(peer);  // HOLD
  dirty_ = true;
}

// The channel has no demand, or is gone: its grant is free at once.
void CadenceReceiver::release(std::uint32_t peer) {
  table_.release(peer);
  dirty_ = dirty_ || table_.active() + table_.waiting() > 0;
}

void CadenceReceiver::decrease(std::uint32_t peer, std::uint32_t mbps) {
  table_.lower(table_[peer], mbps);
  table_.push_grant(peer);
}

void CadenceReceiver::open(std::uint32_t peer, const RequestMessage& r) {
  Channel& ch = table_[peer];
  const bool due = ch.due;
  release(peer);
  table_.unlist(peer);
  ch = Channel{};
  ch.due = due;
  ch.mode = Mode::idle;
  ch.channel = r.channel;
  ch.req_seq = static_cast<std::uint16_t>(r.req_seq - 1);
  // A sender that outlived its receiver continues from the numbers that it knows.
  ch.seq = r.grant_echo;
  ch.sent_known = r.sent_total;
  ch.rx_base = r.sent_total - table_.counters(peer).rx_bytes;
  ch.midway = r.sent_total > params_.most_start_bytes;
}

void CadenceReceiver::confirm(Channel& ch, std::uint16_t echo) {
  ch.echo = echo;
  if (echo != ch.seq || echo == 0 || ch.com == ch.grant) return;
  table_.set_com(ch, ch.grant);
  ch.old_lease_end = 0;
  dirty_ = true;
}

// Whether the last GRANT may have been lost: a decrease is told again, others with a REQUEST.
bool CadenceReceiver::repeats(std::int64_t now, const Channel& ch) const {
  return ch.seq != 0 && ch.echo != ch.seq && now - ch.sent_at > params_.rtt_ns * 3 / 2;
}

ChannelCounters* CadenceReceiver::on_request(Nanos now_ns, std::uint32_t peer,
                                             const RequestMessage& r) {
  const std::int64_t now = now_ns.count;
  if (table_.grow(peer)) planner_.grow(table_.size());
  Channel& ch = table_[peer];
  ChannelCounters* const result = &table_.counters(peer);

  const bool fresh = ch.mode == Mode::unknown || ch.channel != r.channel;
  const bool old = !fresh && seq_distance(r.req_seq, ch.req_seq) <= 0;
  if (old && now - ch.req_at < kRestartRtts * params_.rtt_ns) return result;
  if (fresh || old) {
    if (r.close) return result;
    open(peer, r);
  }
  ch.req_seq = r.req_seq;
  ch.req_stamp = r.timestamp_ns;
  ch.req_at = now;
  ch.heard_us = micros(now);
  if (r.close) {
    release(peer);
    table_.unlist(peer);
    ch.mode = Mode::unknown;
    return result;
  }

  const std::uint64_t sent = extend_total(ch.sent_known, r.sent_total);
  table_.forget_uncharged(peer, sent);
  ch.sent_known = std::max({ch.sent_known, sent, extend_total(sent, r.unscheduled_total)});
  confirm(ch, r.grant_echo);

  if (r.demand_bytes == 0) {
    release(peer);
    // It gets a new number, so that a grant still in flight is older than this confirmation.
    ch.next_seq();
    table_.push_grant(peer);
    return result;
  }

  const std::uint64_t final_total = sent + r.demand_bytes;
  if (final_total != ch.final_total || r.tx_cap_mbps != ch.tx_cap) dirty_ = true;
  ch.final_total = final_total;
  ch.tx_cap = r.tx_cap_mbps;
  if (ch.mode == Mode::idle) {
    if (table_.active() < params_.max_active && table_.waiting() == 0) {
      activate(now, peer);
    } else {
      enqueue(now, peer);
    }
  } else if (repeats(now, ch) ||
             (ch.mode == Mode::waiting && now - ch.sent_at > lease_of(ch) / 2)) {
    table_.push_grant(peer);
  }
  return result;
}

void CadenceReceiver::forget(Nanos, std::uint32_t peer) {
  if (peer >= table_.size()) return;
  release(peer);
  table_.erase(peer);
}

void CadenceReceiver::revoke(Nanos, std::uint32_t peer) {
  if (peer >= table_.size() || table_[peer].mode == Mode::unknown) return;
  Channel& ch = table_[peer];
  release(peer);
  ch.next_seq();
  ch.revoked = true;
  table_.push_grant(peer);
}

void CadenceReceiver::fill_grant(std::int64_t now, std::uint32_t peer, GrantMessage& g) {
  Channel& ch = table_[peer];
  const std::int64_t lease = lease_of(ch);
  const bool granted = ch.mode == Mode::active && ch.grant > 0;
  std::uint64_t limit = table_.known_sent(peer);
  if (granted) {
    limit += bytes_at(ch.grant, lease + 2 * params_.rtt_ns) + 2 * params_.packet_bytes;
    ch.lease_end = now + lease + params_.rtt_ns;
    ch.limit_total = std::max(ch.limit_total, limit);
  }
  g = GrantMessage{};
  g.hold = ch.mode == Mode::waiting;
  g.revoke = std::exchange(ch.revoked, false) && !granted && !g.hold;
  g.channel = ch.channel;
  g.grant_seq = ch.seq;
  g.rate_mbps = granted ? ch.grant : 0;
  g.limit_total = limit & kTotalMask;
  g.lease_us = micros(lease);
  g.effective_delay_us = ch.delay_us;
  g.active_senders =
      static_cast<std::uint16_t>(std::min(table_.active() + table_.waiting(), 0xFFFFU));
  g.timestamp_echo_ns = ch.req_stamp;
  g.receiver_hold_ns =
      static_cast<std::uint32_t>(std::min<std::int64_t>(now - ch.req_at, 0xFFFF'FFFF));
  ch.sent_at = now;
  ++grants_sent_;
}

std::size_t CadenceReceiver::poll(Nanos now_ns, std::span<ReceiverOutput> out) {
  const std::int64_t now = now_ns.count;
  if (now >= scan_at_) scan(now);
  if ((dirty_ || now >= retry_at_) && now >= alloc_at_) allocate(now);
  std::size_t n = 0;
  for (; n < out.size(); ++n) {
    const auto peer = table_.pop_grant();
    if (!peer) break;
    out[n].peer = *peer;
    fill_grant(now, *peer, out[n].grant);
  }
  return n;
}

Nanos CadenceReceiver::next_wake() const {
  if (table_.grants_due()) return Nanos{0};
  const std::int64_t wanted = dirty_ ? alloc_at_ : std::max(retry_at_, alloc_at_);
  return Nanos{std::min(scan_at_, wanted)};
}

std::int64_t CadenceReceiver::lease_of(const Channel& ch) const {
  std::int64_t lease = lease_ns_;
  if (ch.mode == Mode::waiting) {
    lease = std::clamp(8 * std::int64_t{table_.waiting()} * params_.control_ns, lease,
                       std::max(lease, kHoldLeaseMaxNs));
  } else if (ch.grant > 0) {
    lease = std::max(lease, kLeasePackets * params_.packet_bytes * 8000 / ch.grant);
  }
  return (lease + 999) / 1000 * 1000;
}

void CadenceReceiver::scan_channel(std::int64_t now, std::uint32_t peer) {
  Channel& ch = table_[peer];
  const std::int64_t lease = lease_of(ch);
  const std::uint32_t silent_us = micros(now) - ch.heard_us;
  const std::int64_t silent = std::int64_t{silent_us} * 1000;
  const bool alive = silent < std::max(lease / 2, 8 * params_.rtt_ns);

  if (!alive && ch.mode == Mode::active && ch.grant > 0 && now >= ch.lease_end) {
    // No refresh was sent: the sender's lease is over, and it halves its rate from here.
    decrease(peer, std::min(ch.grant, params_.fallback_mbps));
    dirty_ = true;
  }
  if (!alive && silent > lease + std::max(10 * params_.rtt_ns, lease) && now >= ch.lease_end) {
    revoke(Nanos{now}, peer);
    table_.unlist(peer);  // once: there is nothing more to take back
    return;
  }
  // I1: unconfirmed. The older grant ends with its lease; then the sender halves every RTT.
  while (ch.com > ch.grant && now >= ch.old_lease_end + params_.rtt_ns) {
    const std::uint32_t floor = std::max(ch.grant, std::min(ch.com, params_.fallback_mbps));
    if (ch.com <= floor) break;
    table_.set_com(ch, std::max(ch.com / 2, floor));
    ch.old_lease_end += params_.rtt_ns;
    dirty_ = true;
  }
  if (alive && ch.mode == Mode::active && ch.grant > 0 &&
      ch.lease_end - params_.rtt_ns - now < lease / 2) {
    table_.push_grant(peer);  // refresh
  }
  if (alive && ch.com > ch.grant && repeats(now, ch)) table_.push_grant(peer);
  if (ch.mode != Mode::active && ch.com == 0) table_.unlist(peer);
}

void CadenceReceiver::scan(std::int64_t now) {
  // Backwards: unlist swaps with the last.
  for (std::size_t i = table_.listed().size(); i > 0; --i) {
    const std::uint32_t peer = table_.listed()[i - 1];
    if (table_.take_arrivals(peer)) table_[peer].heard_us = micros(now);
    scan_channel(now, peer);
  }
  scan_at_ = table_.listed().empty() ? kNeverNanos.count : now + 2 * params_.rtt_ns;
}

// I4: channels that were active long enough make room for half an active set of waiting channels.
void CadenceReceiver::rotate(std::int64_t now) {
  if (table_.waiting() == 0) return;
  if (now < rotate_at_) {
    retry(rotate_at_);
    return;
  }
  rotate_at_ = now + params_.rotation_ns;
  retry(rotate_at_);
  std::uint32_t turns = std::min(table_.waiting(), std::max(1U, params_.max_active / 2));
  if (table_.active() < params_.max_active)
    turns -= std::min(turns, params_.max_active - table_.active());
  const std::uint32_t now_us = micros(now);
  const std::uint32_t age_us = micros(params_.rotation_ns);
  for (const std::uint32_t peer : table_.listed()) {
    if (turns == 0) break;
    const Channel& ch = table_[peer];
    if (ch.mode != Mode::active || now_us - ch.turn_us < age_us) continue;
    decrease(peer, 0);
    enqueue(now, peer);
    --turns;
  }
}

void CadenceReceiver::allocate(std::int64_t now) {
  dirty_ = false;
  retry_at_ = kNeverNanos.count;
  alloc_at_ = now + params_.alloc_ns;
  ++allocations_;
  stood_mbps_ = std::min(stood_mbps_, table_.committed());
  stood_active_ = std::min(stood_active_, table_.active());
  if (params_new_) params_at_ = now;
  params_new_ = false;
  rotate(now);
  while (table_.active() < params_.max_active) {
    const auto peer = table_.pop_waiting();
    if (!peer) break;
    activate(now, *peer);
  }
  dirty_ = false;  // the lists just changed by our own hand

  const std::int64_t refresh =
      std::max(kRefreshRtts * params_.rtt_ns, std::int64_t{table_.active()} * params_.control_ns);
  lease_ns_ = (std::max(4 * refresh, params_.lease_min_ns) + 999) / 1000 * 1000;

  retry(planner_.plan({params_, table_, now, params_.eta_mbps}));
}

std::string CadenceReceiver::check_invariants(Nanos now) const {
  if (std::string broken = table_.check(params_); !broken.empty()) return broken;
  for (std::uint32_t peer = 0; peer < table_.size(); ++peer) {
    const Channel& ch = table_[peer];
    // I4: an active channel is granted something within T_live; a waiting one gets its turn.
    const auto age_us = static_cast<std::uint32_t>(now.count / 1000) - ch.turn_us;
    const std::int64_t in_force = params_new_ ? 0 : now.count - params_at_;
    const std::int64_t age = std::min(static_cast<std::int64_t>(age_us) * 1000, in_force);
    const std::int64_t live = params_.rotation_ns + 2 * lease_ns_;
    if (ch.mode == Mode::active && ch.grant == 0 && age > live) {
      return fault("I4: active without a grant, ns", static_cast<std::uint64_t>(age),
                   static_cast<std::uint64_t>(live));
    }
    const std::int64_t turns =
        2 + std::int64_t{table_.size()} / std::max(1U, params_.max_active / 2);
    const std::int64_t wait = 2 * turns * params_.rotation_ns;
    if (ch.mode == Mode::waiting && age > wait) {
      return fault("I4: waiting beyond its turn, ns", static_cast<std::uint64_t>(age),
                   static_cast<std::uint64_t>(wait));
    }
  }
  const std::uint64_t com = table_.committed();
  const std::uint64_t most = std::max<std::uint64_t>(params_.eta_mbps, stood_mbps_);
  if (com > most) return fault("I1: committed beyond the plan, Mb/s", com, most);
  if (planner_.worst_raise() > 0) {
    return fault("I1: an increase beyond the capacity, Mb/s", planner_.worst_raise(), 0);
  }
  const std::uint32_t seats = std::max(params_.max_active, stood_active_);
  if (table_.active() > seats) return fault("active set", table_.active(), seats);
  return {};
}

CadenceReceiver::Snapshot CadenceReceiver::snapshot() const {
  Snapshot s;
  s.committed_mbps = table_.committed();
  s.granted_mbps = table_.granted();
  s.active = table_.active();
  s.waiting = table_.waiting();
  s.grants_sent = grants_sent_;
  s.allocations = allocations_;
  return s;
}

}  // namespace paceline::cc
