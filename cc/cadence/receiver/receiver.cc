#include "cc/cadence/receiver/receiver.h"

#include "cc/dispatch.h"

namespace paceline::cc {

using cadence::fault;
using cadence::micros;

namespace {

// A REQUEST that looks old after this long is not late: the sender's numbering has restarted.
constexpr std::int64_t kRestartRtts = 16;
constexpr std::int64_t kReplanPart = 64;    // drift of the plan that is worth an allocation
constexpr std::int64_t kReplanRtts = 32;    // for less than that, this often
constexpr std::uint32_t kQuickQ16 = 32768;  // more than half of the packets marked
constexpr std::int64_t kQuickHoldRtts = 3;
constexpr std::int64_t kLeasePackets = 8;  // a lease outlives this many packets of its rate
constexpr std::int64_t kHoldLeaseMaxNs = 60'000'000;
constexpr std::int64_t kRefreshRtts = 2;
// Capacity that debt leaves to grants at the least: I4 holds under a flood of starts, too.
constexpr std::uint64_t kDebtFloor = 16;

}  // namespace

CadenceReceiver::CadenceReceiver(const CadenceParams& params)
    : params_(params), queue_(params), lease_ns_(params.lease_min_ns) {}

void CadenceReceiver::set_params(const ParamBlock& params) {
  set_params(params.as<CadenceParams>());
}

void CadenceReceiver::set_params(const CadenceParams& params) {
  params_ = params;
  stood_mbps_ = table_.committed();
  stood_active_ = table_.active();
  params_new_ = true;
  dirty_ = true;
}

cadence::PortLoad CadenceReceiver::load() const {
  return {table_.committed(), watch_.unaccounted_mbps(), table_.listed().size()};
}

void CadenceReceiver::set_com(Channel& ch, std::uint32_t mbps) {
  // A confirmation overtakes the data sent before it by about two packet times and the sender's
  // spacing: what still arrives at the old rate goes into a running debt.
  if (mbps < ch.com && debt_.bytes() > 0)
    debt_.add_late(params_, bytes_at(ch.com - mbps, params_.rtt_ns / 4));
  table_.set_com(ch, mbps);
}

// When the next allocation may be: T_alloc after the last, and its GRANTs paid for.
std::int64_t CadenceReceiver::may_allocate_at() const {
  return queue_.overdrawn() ? std::max(alloc_at_, queue_.paid_at(params_, load())) : alloc_at_;
}

void CadenceReceiver::list(std::int64_t now, std::uint32_t peer) {
  if (!table_.list(peer) || scan_at_ != kNeverNanos.count) return;
  scan_at_ = now + 2 * params_.rtt_ns;
  scanned_at_ = std::max(scanned_at_, now - 64 * params_.rtt_ns);
}

void CadenceReceiver::activate(std::int64_t now, std::uint32_t peer) {
  table_.activate(now, peer);
  list(now, peer);
  dirty_ = true;
}

void CadenceReceiver::enqueue(std::int64_t now, std::uint32_t peer) {
  table_.enqueue(now, peer);
  queue_.push_grant(table_[peer], peer);  // HOLD
  dirty_ = true;
}

// The channel has no demand, or is gone: what it had is free at once.
void CadenceReceiver::release(std::uint32_t peer) {
  set_com(table_[peer], 0);
  table_.release(peer);
  dirty_ = dirty_ || table_.active() + table_.waiting() > 0;
}

// Its sender gives up what it has, and the rest of its bytes, a round trip's, still comes at that
// rate: whoever is granted it now has the first byte here when that is over.
void CadenceReceiver::release_ahead(std::int64_t now, Channel& ch) {
  advance_debt(now);
  debt_.expect(-std::int64_t{ch.com});
  table_.set_com(ch, 0);
}

void CadenceReceiver::decrease(std::int64_t now, std::uint32_t peer, std::uint32_t mbps) {
  Channel& ch = table_[peer];
  table_.lower(ch, mbps, false);
  queue_.push_grant(ch, peer);
  scan_at_ = std::min(scan_at_, now + params_.rtt_ns * 5 / 4);
}

void CadenceReceiver::open(std::int64_t now, std::uint32_t peer, const RequestMessage& r) {
  Channel& ch = table_[peer];
  const bool due = ch.due;
  release(peer);
  table_.unlist(peer);
  ch = Channel{};
  ch.due = due;
  ch.mode = Mode::idle;
  ch.channel = r.channel;
  ch.req_seq = static_cast<std::uint16_t>(r.req_seq - 1);
  // A sender that outlived its receiver goes on from the numbers it knows.
  ch.seq = r.grant_echo;
  ch.path_us = micros(now) - 1'000'000;
  // Its total may hold years of starts; the newest one is all that can still be on its way.
  const std::uint64_t newest = std::max(params_.most_start_bytes, params_.bulk_start_bytes);
  ch.unscheduled_total = r.unscheduled_total - std::min(r.unscheduled_total, newest);
  ch.sent_known = r.sent_total;
  ch.rx_base = r.sent_total - table_.counters(peer).rx_bytes;
  ch.midway = r.sent_total > newest;
}

void CadenceReceiver::charge(std::int64_t now, Channel& ch, std::uint64_t bytes) {
  advance_debt(now);
  debt_.charge(now, params_, bytes);
  starts_.advance(now, params_);
  starts_.count(ch);
  if (debt_.bytes() > params_.q_target_bytes && table_.active() > 0) dirty_ = true;
}

void CadenceReceiver::confirm(std::int64_t now, Channel& ch, std::uint16_t echo) {
  ch.echo = echo;
  if (echo != ch.seq || echo == 0 || ch.com == ch.grant) return;
  if (ch.later) {  // its bytes come at the old rate for another RTT
    advance_debt(now);
    debt_.expect(-std::int64_t{ch.com - ch.grant});
  }
  set_com(ch, ch.grant);
  ch.old_lease_end = 0;
  dirty_ = true;
}

// Whether the last GRANT got lost, so that a REQUEST is answered by another one. If nothing is
// granted, the lost GRANT only said so, and a repetition costs credit: without credit, repetitions
// leave most of the earned credit to the allocation that the channel waits for.
bool CadenceReceiver::repeats(std::int64_t now, const Channel& ch) const {
  if (ch.seq == 0 || ch.echo == ch.seq) return false;
  const std::int64_t quiet = now - ch.sent_at;
  const bool spares = ch.com == 0 && queue_.overdrawn();
  return quiet > (spares ? std::max(lease_of(ch), 4 * table_.active() * params_.control_ns)
                         : params_.rtt_ns * 3 / 2);
}

ChannelCounters* CadenceReceiver::on_request(Nanos now_ns, std::uint32_t peer,
                                             const RequestMessage& r) {
  const std::int64_t now = now_ns.count;
  queue_.earn(now, params_, load());
  if (table_.grow(peer)) {
    queue_.reserve(table_.size());
    planner_.grow(table_.size());
    marked_.reserve(table_.size());
  }
  Channel& ch = table_[peer];
  ChannelCounters* const result = &table_.counters(peer);

  const bool fresh = ch.mode == Mode::unknown || ch.channel != r.channel;
  const bool old = !fresh && seq_distance(r.req_seq, ch.req_seq) <= 0;
  if (old && now - ch.req_at < kRestartRtts * params_.rtt_ns) return result;
  if (fresh || old) {
    if (r.close) return result;
    open(now, peer, r);
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

  const std::uint64_t unscheduled = extend_total(ch.unscheduled_total, r.unscheduled_total);
  const std::uint64_t start =
      unscheduled > ch.unscheduled_total ? unscheduled - ch.unscheduled_total : 0;
  const std::uint64_t sent = extend_total(ch.sent_known, r.sent_total);
  table_.forget_uncharged(peer, sent);
  ch.unscheduled_total += start;
  ch.sent_known = std::max(ch.sent_known, sent + start);
  if (start > 0) {
    charge(now, ch, start);
    list(now, peer);  // its bytes count in the port's utilisation
  }
  confirm(now, ch, r.grant_echo);

  if (r.demand_bytes == 0 || r.tx_cap_mbps == kCapNoGrant) {
    const bool tell = r.demand_bytes == 0;
    if (!tell) release_ahead(now, ch);
    release(peer);
    ch.final_total = sent + r.demand_bytes;
    // A number of its own, so that a grant still on its way is older than this confirmation.
    if (tell) ch.next_seq();
    // Senders whose messages need no grant learn of competitors only when told.
    if (tell || start > 2 * std::uint64_t{starts_.budget(params_)}) queue_.push_grant(ch, peer);
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
    queue_.push_grant(ch, peer);
  }
  return result;
}

void CadenceReceiver::forget(Nanos, std::uint32_t peer) {
  if (peer >= table_.size()) return;
  release(peer);
  queue_.forget(peer);
  table_.erase(peer);
}

void CadenceReceiver::revoke(Nanos, std::uint32_t peer) {
  if (peer >= table_.size() || table_[peer].mode == Mode::unknown) return;
  Channel& ch = table_[peer];
  release(peer);
  ch.next_seq();
  queue_.push({Due::Kind::revoke, peer, 0});
}

void CadenceReceiver::fill_grant(std::int64_t now, Channel& ch, std::uint32_t peer, bool revoked,
                                 GrantMessage& g) {
  const std::int64_t lease = lease_of(ch);
  const bool granted = ch.mode == Mode::active && ch.grant > 0;
  const std::uint64_t base = table_.known_sent(peer);
  std::uint64_t limit = base;
  if (granted) {
    limit += bytes_at(ch.grant, lease + 2 * params_.rtt_ns) + 2 * params_.packet_bytes;
    ch.lease_end = now + lease + params_.rtt_ns;
    ch.limit_total = std::max(ch.limit_total, limit);
  }
  g = GrantMessage{};
  g.hold = ch.mode == Mode::waiting;
  g.revoke = revoked;
  g.channel = ch.channel;
  g.grant_seq = ch.seq;
  g.rate_mbps = granted ? ch.grant : 0;
  g.limit_total = limit & kTotalMask;
  g.lease_us = micros(lease);
  g.unscheduled_budget = starts_.budget(params_);
  // One sender cannot queue at a port as fast as its own: what it announced is under way.
  const std::uint64_t queue = table_.listed().size() > 1 ? debt_.bytes() : 0;
  g.queue_us = static_cast<std::uint8_t>(
      std::min<std::uint64_t>((queue * 8 + params_.link_mbps - 1) / params_.link_mbps, 255));
  g.active_senders =
      static_cast<std::uint16_t>(std::min(table_.active() + table_.waiting(), 0xFFFFU));
  g.timestamp_echo_ns = ch.req_stamp;
  g.receiver_hold_ns =
      static_cast<std::uint32_t>(std::min<std::int64_t>(now - ch.req_at, 0xFFFF'FFFF));
  ch.sent_at = now;
  ++grants_sent_;
}

void CadenceReceiver::fill_path(const Due& due, PathMessage& m) {
  Channel& ch = table_[due.peer];
  m = PathMessage{};
  m.channel = ch.channel;
  m.seq = ++ch.path_seq;
  m.bad_entropy = table_.counters(due.peer).last_marked_entropy;
  if (due.kind == Due::Kind::quick) {
    m.quick_adapt_mbps = due.value;
  } else {
    m.alpha_q16 = static_cast<std::uint16_t>(due.value);
  }
  ++paths_sent_;
}

std::size_t CadenceReceiver::poll(Nanos now_ns, std::span<ReceiverOutput> out) {
  const std::int64_t now = now_ns.count;
  if (now >= scan_at_) scan(now);
  queue_.earn(now, params_, load());
  if ((dirty_ || now >= retry_at_) && now >= may_allocate_at()) allocate(now);

  std::size_t n = 0;
  for (; n < out.size() && !queue_.empty(); ++n) {
    const Due due = queue_.pop();
    ReceiverOutput& o = out[n];
    o.peer = due.peer;
    if (due.kind == Due::Kind::alpha || due.kind == Due::Kind::quick) {
      o.kind = ReceiverOutput::Kind::path;
      fill_path(due, o.path);
      continue;
    }
    Channel& ch = table_[due.peer];
    const bool revoked = due.kind == Due::Kind::revoke;
    o.kind = ReceiverOutput::Kind::grant;
    if (!revoked) ch.due = false;
    fill_grant(now, ch, due.peer, revoked, o.grant);
    if (!revoked) o.grant.effective_delay_us = due.value;
  }
  queue_.spend(n, params_);
  return n;
}

Nanos CadenceReceiver::next_wake() const {
  if (!queue_.empty()) return Nanos{0};
  std::int64_t wake = scan_at_;
  if (dirty_) wake = std::min(wake, may_allocate_at());
  if (retry_at_ != kNeverNanos.count) {
    wake = std::min(wake, std::max(retry_at_, may_allocate_at()));
  }
  return Nanos{wake};
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

// Returns whether the channel still needs a look within an RTT (an unconfirmed decrease).
bool CadenceReceiver::scan_channel(std::int64_t now, std::uint32_t peer) {
  Channel& ch = table_[peer];
  const std::int64_t lease = lease_of(ch);
  const std::uint32_t silent_us = micros(now) - ch.heard_us;
  const std::int64_t silent = std::int64_t{silent_us} * 1000;
  const bool alive = silent < std::max(lease / 2, 8 * params_.rtt_ns);

  if (!alive && ch.mode == Mode::active && ch.grant > 0 && now >= ch.lease_end) {
    // No refresh was sent: the sender's lease is over, and it halves its rate from here.
    decrease(now, peer, std::min(ch.grant, params_.fallback_mbps));
    dirty_ = true;
  }
  if (!alive && silent > lease + std::max(10 * params_.rtt_ns, lease) && now >= ch.lease_end) {
    revoke(Nanos{now}, peer);
    table_.unlist(peer);  // once: there is nothing more to take back
    return false;
  }
  bool pending = false;
  if (ch.com > ch.grant) {
    // I1: unconfirmed. The older grant ends with its lease; then the sender halves every RTT.
    while (ch.com > ch.grant && now >= ch.old_lease_end + params_.rtt_ns) {
      const std::uint32_t floor = std::max(ch.grant, std::min(ch.com, params_.fallback_mbps));
      if (ch.com <= floor) break;
      set_com(ch, std::max(ch.com / 2, floor));
      ch.old_lease_end += params_.rtt_ns;
      dirty_ = true;
    }
    if (alive && now >= ch.sent_at + params_.rtt_ns * 5 / 4) queue_.push_grant(ch, peer);
    pending = alive;
  }
  if (alive && ch.mode == Mode::active && ch.grant > 0 &&
      ch.lease_end - params_.rtt_ns - now < lease / 2) {
    queue_.push_grant(ch, peer);  // refresh
  }
  // Without a commitment it stays listed while its bytes arrive.
  if (ch.mode != Mode::active && ch.com == 0 && silent > 4 * params_.rtt_ns) table_.unlist(peer);
  return pending;
}

// Congestion on the way although the port is not full is the path's.
void CadenceReceiver::attribute_path(std::int64_t now, const Marked& m) {
  Channel& ch = table_[m.peer];
  const std::uint32_t now_us = micros(now);
  const std::uint32_t hold_us = micros(kQuickHoldRtts * params_.rtt_ns) + 1;
  ch.alpha_q16 = static_cast<std::uint16_t>(std::min((ch.alpha_q16 + m.q16) / 2, 65535U));
  if (m.q16 > kQuickQ16 && now_us - ch.path_us >= hold_us && m.mbps > 0) {
    ch.path_us = now_us;
    queue_.push({Due::Kind::quick, m.peer, m.mbps});
  } else if (now_us - ch.path_us >= hold_us) {
    queue_.push({Due::Kind::alpha, m.peer, std::max<std::uint32_t>(ch.alpha_q16, 1)});
  }
}

void CadenceReceiver::scan(std::int64_t now) {
  const std::int64_t span = std::max<std::int64_t>(now - scanned_at_, 1);
  scanned_at_ = now;
  advance_debt(now);
  starts_.advance(now, params_);

  std::uint64_t rx = 0;
  std::uint64_t lapsed = 0;
  bool pending = false;
  marked_.clear();
  // Backwards: unlist swaps with the last.
  for (std::size_t i = table_.listed().size(); i > 0; --i) {
    const std::uint32_t peer = table_.listed()[i - 1];
    Channel& ch = table_[peer];
    const auto [bytes, packets, ce] = table_.take_arrivals(peer);
    rx += bytes;
    if (bytes > 0) ch.heard_us = micros(now);
    if (ce > 0 && packets > 0) {
      const auto mbps = std::uint64_t{bytes} * 8000 / static_cast<std::uint64_t>(span);
      marked_.push_back({peer, ce * 65535U / packets, static_cast<std::uint32_t>(mbps)});
    } else if (packets > 0) {
      ch.alpha_q16 = static_cast<std::uint16_t>(ch.alpha_q16 / 2);
    }
    // Data above what is committed comes from a sender in its fallback: unaccounted for in the
    // plan.
    const std::uint64_t committed = bytes_at(ch.com, span) + 2 * params_.packet_bytes;
    if (ch.echo != ch.seq && ch.com <= params_.fallback_mbps && bytes > committed) {
      lapsed += bytes - committed;
    }
    pending = scan_channel(now, peer) || pending;
  }

  table_.count_other(watch_.unaccounted_bytes());
  dirty_ |= watch_.scan(now, {span, rx, lapsed, !marked_.empty()}, params_, debt_);
  if (watch_.below_full()) {
    for (const Marked& m : marked_) attribute_path(now, m);
  }
  // A port that was not busy has no queue left: the debt is paid, whatever the ledger says.
  if (debt_.bytes() > 0 && watch_.was_empty() && now - debt_.charged_at() > 4 * params_.rtt_ns) {
    debt_.clear();
    dirty_ = true;
  }
  // The plan moves with X: give back at once what it lacks, hand out what it gained.
  const std::int64_t gap = static_cast<std::int64_t>(plan()) -
                           static_cast<std::int64_t>(watch_.unaccounted_mbps()) -
                           static_cast<std::int64_t>(table_.committed());
  const std::int64_t part = params_.link_mbps / kReplanPart;
  if (table_.active() > 0 && gap < -part && capacity_ > 0) dirty_ = true;
  if (table_.active() > 0 && gap > part / 2) {
    const std::int64_t rest = gap > part ? 8 : kReplanRtts;
    retry(std::max(now, alloc_at_ + rest * params_.rtt_ns));
  }
  const std::int64_t next = pending ? params_.rtt_ns * 5 / 4 : 2 * params_.rtt_ns;
  scan_at_ = table_.listed().empty() ? kNeverNanos.count : now + next;
}

std::uint64_t CadenceReceiver::plan() const {
  const std::uint64_t planned = plan_mbps(params_, table_.listed().size());
  return planned - planned * watch_.eta_cut() / 64;
}

// Ceff: what grants may add up to now.
std::uint64_t CadenceReceiver::plan_capacity(std::int64_t now) {
  advance_debt(now);
  const std::uint64_t planned = plan();
  const auto fair = static_cast<std::uint64_t>(params_.fair_floor * static_cast<double>(planned));
  std::uint64_t capacity =
      std::max(planned > watch_.unaccounted_mbps() ? planned - watch_.unaccounted_mbps() : 0, fair);
  // Data granted now arrives one round trip from now: the debt that is left by then counts.
  const std::uint64_t busy = table_.committed() + watch_.unaccounted_mbps();
  const std::uint64_t spare =
      busy < params_.link_mbps ? bytes_at(params_.link_mbps - busy, params_.rtt_ns) : 0;
  const std::uint64_t tolerated = params_.q_target_bytes + spare + debt_.before_fresh(now, params_);
  if (debt_.bytes() > tolerated && debt_.may_measure(now, params_)) {
    debt_.measure(now, params_, table_.arrived() + watch_.unaccounted_bytes());
  }
  if (debt_.bytes() > tolerated) {
    const std::uint64_t cut =
        (debt_.bytes() - tolerated) * 8000 / static_cast<std::uint64_t>(params_.drain_ns);
    capacity = std::max(capacity > cut ? capacity - cut : 0, capacity / kDebtFloor);
    retry(now + params_.rtt_ns / 2);
  }
  return capacity;
}

// I4: whoever was active long enough makes room for half an active set of waiting channels.
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
    decrease(now, peer, 0);
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
  capacity_ = plan_capacity(now);

  const std::int64_t refresh =
      std::max(kRefreshRtts * params_.rtt_ns, std::int64_t{table_.active()} * params_.control_ns);
  lease_ns_ = (std::max(4 * refresh, params_.lease_min_ns) + 999) / 1000 * 1000;

  const auto outcome =
      planner_.plan({params_, table_, debt_, queue_, now, capacity_, watch_.unaccounted_mbps()});
  retry(outcome.retry_at);
  if (outcome.lowered) scan_at_ = std::min(scan_at_, now + params_.rtt_ns * 5 / 4);
}

std::string CadenceReceiver::check_invariants(Nanos now) const {
  if (std::string broken = table_.check(params_); !broken.empty()) return broken;
  std::uint32_t committed = 0;
  for (std::uint32_t peer = 0; peer < table_.size(); ++peer) {
    const Channel& ch = table_[peer];
    committed += ch.com > 0 ? 1 : 0;

    // I4: an active channel is granted something within T_live; a waiting one gets its turn.
    const auto age_us = static_cast<std::uint32_t>(now.count / 1000) - ch.turn_us;
    const std::int64_t in_force = params_new_ ? 0 : now.count - params_at_;
    const std::int64_t age = std::min(static_cast<std::int64_t>(age_us) * 1000, in_force);
    const std::int64_t burst = std::int64_t{8} * params_.max_active * params_.control_ns;
    const std::int64_t live = 64 * params_.rtt_ns + 2 * lease_ns_ + burst;
    if (ch.mode == Mode::active && ch.grant == 0 && age > live) {
      return fault("I4: active without a grant, ns", static_cast<std::uint64_t>(age),
                   static_cast<std::uint64_t>(live));
    }
    const std::int64_t turns =
        2 + std::int64_t{table_.waiting()} / std::max(1U, params_.max_active / 2);
    const std::int64_t wait = 2 * turns * (params_.rotation_ns + burst);
    if (ch.mode == Mode::waiting && age > wait) {
      return fault("I4: waiting beyond its turn, ns", static_cast<std::uint64_t>(age),
                   static_cast<std::uint64_t>(wait));
    }
  }
  const std::uint64_t com = table_.committed();
  const std::uint64_t most = std::max<std::uint64_t>(
      committed > 1 ? plan_mbps(params_, 2) : params_.link_mbps, stood_mbps_);
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
  s.capacity_mbps = capacity_;
  s.unaccounted_mbps = watch_.unaccounted_mbps();
  s.virtual_queue_bytes = debt_.bytes();
  s.active = table_.active();
  s.waiting = table_.waiting();
  s.start_budget_bytes = starts_.budget(params_);
  s.grants_sent = grants_sent_;
  s.paths_sent = paths_sent_;
  s.allocations = allocations_;
  s.eta_cut_q6 = watch_.eta_cut();
  return s;
}

}  // namespace paceline::cc
