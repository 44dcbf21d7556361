// Messages in and out of the allocator, and its lists of channels.
#include "cc/cadence/receiver.h"

#include <algorithm>

#include "cc/dispatch.h"

namespace paceline::cc {
namespace {

// GRANTs that may leave at once before their long-run spacing holds, per active channel allowed.
constexpr std::int64_t kGrantBurst = 4;
// What the port lets idle pays for more GRANTs than control_share does: this part of it. They are
// what gets the capacity used, and then they are the port's cheapest bytes.
constexpr std::int64_t kIdleForGrants = 32;
// A REQUEST that looks old after this long is not late: the sender's numbering has restarted.
constexpr std::int64_t kRestartRtts = 16;

std::uint32_t micros(std::int64_t ns) { return static_cast<std::uint32_t>(ns / 1000); }

}  // namespace

CadenceReceiver::CadenceReceiver(const CadenceParams& params)
    : params_(params),
      credit_ns_(kGrantBurst * params.max_active * params.control_ns),
      lease_ns_(params.lease_min_ns) {}

void CadenceReceiver::set_params(const ParamBlock& params) {
  set_params(params.as<CadenceParams>());
}

void CadenceReceiver::set_params(const CadenceParams& params) {
  params_ = params;
  stood_mbps_ = com_sum_;
  stood_active_ = active_count_;
  params_new_ = true;
  dirty_ = true;
}

ChannelCounters& CadenceReceiver::counters(std::uint32_t peer) const {
  return (*counter_blocks_[peer / kCountersPerBlock])[peer % kCountersPerBlock];
}

void CadenceReceiver::set_com(Channel& ch, std::uint32_t mbps) {
  // A confirmation overtakes the data sent before it by about two packet times and the sender's
  // spacing: what still arrives at the old rate goes into a running debt.
  if (mbps < ch.com && debt_bytes_ > 0) {
    add_debt(debt_at_, bytes_at(ch.com - mbps, params_.rtt_ns / 4));
  }
  com_sum_ = com_sum_ - ch.com + mbps;
  ch.com = mbps;
}

void CadenceReceiver::set_grant(Channel& ch, std::uint32_t mbps) {
  grant_sum_ = grant_sum_ - ch.grant + mbps;
  ch.grant = mbps;
}

void CadenceReceiver::set_mode(std::uint32_t peer, Mode mode) {
  channels_[peer].mode = mode;
  const std::uint64_t bit = std::uint64_t{1} << peer % 64;
  std::uint64_t& word = active_[peer / 64];
  word = mode == Mode::active ? word | bit : word & ~bit;
}

// How fast credit for GRANTs grows, in 1/256: once per t_control, and from idle capacity.
std::int64_t CadenceReceiver::credit_speed() const {
  const std::uint64_t busy = com_sum_ + foreign_mbps_;
  const auto idle =
      static_cast<std::int64_t>(params_.link_mbps > busy ? params_.link_mbps - busy : 0);
  return 256 + 256 * params_.control_ns * idle /
                   (std::int64_t{kControlWireBytes} * 8000 * kIdleForGrants);
}

// Before the committed rates change, and with them the speed.
void CadenceReceiver::earn_credit(std::int64_t now) {
  if (now <= credit_at_) return;
  const std::int64_t full = kGrantBurst * params_.max_active * params_.control_ns;
  const std::int64_t span = std::min(now - credit_at_, full - std::min(credit_ns_, full));
  credit_ns_ = std::min(credit_ns_ + span * credit_speed() / 256, full);
  credit_at_ = now;
}

// When the next allocation may be: T_alloc after the last, and its GRANTs paid for.
std::int64_t CadenceReceiver::may_allocate_at() const {
  if (credit_ns_ >= 0) return alloc_at_;
  const std::int64_t speed = credit_speed();
  return std::max(alloc_at_, credit_at_ + (-credit_ns_ * 256 + speed - 1) / speed);
}

void CadenceReceiver::list(std::int64_t now, std::uint32_t peer) {
  Channel& ch = channels_[peer];
  if (ch.position != 0) return;
  listed_.push_back(peer);
  ch.position = static_cast<std::uint32_t>(listed_.size());
  const ChannelCounters& c = counters(peer);
  other_bytes_ -= c.rx_bytes;
  ch.last_rx = static_cast<std::uint32_t>(c.rx_bytes);
  ch.last_packets = static_cast<std::uint16_t>(c.rx_packets);
  ch.last_ce = static_cast<std::uint16_t>(c.ce_packets);
  if (scan_at_ == kNeverNanos.count) {
    scan_at_ = now + 2 * params_.rtt_ns;
    if (now - scanned_at_ > 64 * params_.rtt_ns) scanned_at_ = now - 64 * params_.rtt_ns;
  }
}

void CadenceReceiver::unlist(std::uint32_t peer) {
  Channel& ch = channels_[peer];
  if (ch.position == 0) return;
  const std::uint32_t last = listed_.back();
  listed_[ch.position - 1] = last;
  channels_[last].position = ch.position;
  listed_.pop_back();
  ch.position = 0;
  other_bytes_ += counters(peer).rx_bytes;
}

void CadenceReceiver::activate(std::int64_t now, std::uint32_t peer) {
  Channel& ch = channels_[peer];
  set_mode(peer, Mode::active);
  ch.turn_us = micros(now);
  ++active_count_;
  list(now, peer);
  dirty_ = true;
}

void CadenceReceiver::enqueue(std::int64_t now, std::uint32_t peer) {
  Channel& ch = channels_[peer];
  set_mode(peer, Mode::waiting);
  ch.turn_us = micros(now);
  ++waiting_count_;
  // Compact before growing: entries before the head are spent.
  if (waiting_head_ > 64 && waiting_head_ * 2 > waiting_.size()) {
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(waiting_head_));
    waiting_head_ = 0;
  }
  waiting_.push_back(peer);
  schedule_grant(peer);  // HOLD
  dirty_ = true;
}

// The channel has no demand, or is gone: what it had is free at once.
void CadenceReceiver::release(std::uint32_t peer) {
  Channel& ch = channels_[peer];
  if (ch.mode == Mode::active) --active_count_;
  if (ch.mode == Mode::waiting) --waiting_count_;
  if (ch.mode != Mode::unknown) set_mode(peer, Mode::idle);
  set_com(ch, 0);
  set_grant(ch, 0);
  ch.old_lease_end = 0;
  dirty_ = dirty_ || active_count_ + waiting_count_ > 0;
}

// Its sender gives up what it has, and the rest of its bytes, a round trip's, still comes at that
// rate: whoever is granted it now has the first byte here when that is over.
void CadenceReceiver::release_ahead(std::int64_t now, Channel& ch) {
  advance_debt(now);
  fresh_mbps_[fresh_slot_] -= ch.com;
  com_sum_ -= ch.com;
  ch.com = 0;
}

void CadenceReceiver::schedule_grant(std::uint32_t peer, std::uint32_t delay_us) {
  if (channels_[peer].due) return;
  channels_[peer].due = true;
  due_.push_back({Due::Kind::grant, peer, delay_us});
}

void CadenceReceiver::open(std::int64_t now, Channel& ch, std::uint32_t peer,
                           const RequestMessage& r) {
  const bool due = ch.due;
  release(peer);
  unlist(peer);
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
  ch.rx_base = r.sent_total - counters(peer).rx_bytes;
  ch.midway = r.sent_total > newest;
}

// No more can have arrived than was sent. What is over was sent by another algorithm, before the
// connection came into this channel: it is in no sent_total, or in one from the channel's beginning
// and was counted again when it arrived. (REQUESTs go before data, so that what was sent after this
// one is not here yet.)
void CadenceReceiver::forget_uncharged(Channel& ch, std::uint32_t peer, std::uint64_t sent) {
  const std::uint64_t arrived = ch.rx_base + counters(peer).rx_bytes;
  if (arrived <= sent) return;
  ch.rx_base -= arrived - sent;
  ch.midway = true;
}

void CadenceReceiver::charge(std::int64_t now, Channel& ch, std::uint64_t bytes) {
  advance_debt(now);
  add_debt(now, bytes);
  charged_at_ = now;
  advance_windows(now);
  if (ch.start_window != window_) {
    if (static_cast<std::uint8_t>(window_ - ch.start_window) == 1) ++starts_both_;
    ch.start_window = window_;
    ++starts_now_;
  }
  if (debt_bytes_ > params_.q_target_bytes && active_count_ > 0) dirty_ = true;
}

void CadenceReceiver::confirm(std::int64_t now, Channel& ch, std::uint16_t echo) {
  ch.echo = echo;
  if (echo != ch.seq || echo == 0 || ch.com == ch.grant) return;
  if (ch.later) {  // its bytes come at the old rate for another RTT
    advance_debt(now);
    fresh_mbps_[fresh_slot_] -= ch.com - ch.grant;
  }
  set_com(ch, ch.grant);
  ch.old_lease_end = 0;
  dirty_ = true;
}

// Whether the last GRANT got lost, so that a REQUEST is answered by another one. Where nothing is
// granted it only said so, and what says so again costs credit: without any, no more of it than
// leaves most of what is earned to the allocation that the channel waits for.
bool CadenceReceiver::repeats(std::int64_t now, const Channel& ch) const {
  if (ch.seq == 0 || ch.echo == ch.seq) return false;
  const std::int64_t quiet = now - ch.sent_at;
  const bool spares = ch.com == 0 && credit_ns_ < 0;
  return quiet > (spares ? std::max(lease_of(ch), 4 * active_count_ * params_.control_ns)
                         : params_.rtt_ns * 3 / 2);
}

ChannelCounters* CadenceReceiver::on_request(Nanos now_ns, std::uint32_t peer,
                                             const RequestMessage& r) {
  const std::int64_t now = now_ns.count;
  earn_credit(now);
  if (peer >= channels_.size()) {
    channels_.resize(peer + 1);
    while (counter_blocks_.size() * kCountersPerBlock <= peer) {
      counter_blocks_.push_back(std::make_unique<std::array<ChannelCounters, kCountersPerBlock>>());
    }
    due_.reserve(channels_.size());
    listed_.reserve(channels_.size());
    active_.resize(counter_blocks_.size());
    slots_.grow(channels_.size());
    fill_.reserve(channels_.size());
    above_.resize(channels_.size());
    below_.resize(channels_.size());
    selected_.resize(channels_.size());
    marked_.reserve(channels_.size());
  }
  Channel& ch = channels_[peer];
  ChannelCounters* const result = &counters(peer);

  const bool fresh = ch.mode == Mode::unknown || ch.channel != r.channel;
  const bool old = !fresh && seq_distance(r.req_seq, ch.req_seq) <= 0;
  if (old && now - ch.req_at < kRestartRtts * params_.rtt_ns) return result;
  if (fresh || old) {
    if (r.close) return result;
    open(now, ch, peer, r);
  }
  ch.req_seq = r.req_seq;
  ch.req_stamp = r.timestamp_ns;
  ch.req_at = now;
  ch.heard_us = micros(now);
  if (r.close) {
    release(peer);
    unlist(peer);
    ch.mode = Mode::unknown;
    return result;
  }

  const std::uint64_t unscheduled = extend_total(ch.unscheduled_total, r.unscheduled_total);
  const std::uint64_t start =
      unscheduled > ch.unscheduled_total ? unscheduled - ch.unscheduled_total : 0;
  const std::uint64_t sent = extend_total(ch.sent_known, r.sent_total);
  forget_uncharged(ch, peer, sent);
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
    if (tell) ch.seq = ch.seq == 0xFFFF ? std::uint16_t{1} : static_cast<std::uint16_t>(ch.seq + 1);
    // Senders whose messages need no grant learn of competitors only when told.
    if (tell || start > 2 * std::uint64_t{start_budget()}) schedule_grant(peer);
    return result;
  }

  const std::uint64_t final_total = sent + r.demand_bytes;
  if (final_total != ch.final_total || r.tx_cap_mbps != ch.tx_cap) dirty_ = true;
  ch.final_total = final_total;
  ch.tx_cap = r.tx_cap_mbps;
  if (ch.mode == Mode::idle) {
    if (active_count_ < params_.max_active && waiting_count_ == 0) {
      activate(now, peer);
    } else {
      enqueue(now, peer);
    }
  } else if (repeats(now, ch) ||
             (ch.mode == Mode::waiting && now - ch.sent_at > lease_of(ch) / 2)) {
    schedule_grant(peer);
  }
  return result;
}

void CadenceReceiver::forget(Nanos, std::uint32_t peer) {
  if (peer >= channels_.size()) return;
  release(peer);
  unlist(peer);
  std::erase_if(due_, [peer](const Due& d) { return d.peer == peer; });
  due_head_ = std::min(due_head_, due_.size());
  channels_[peer] = Channel{};
  counters(peer) = ChannelCounters{};
}

void CadenceReceiver::revoke(Nanos, std::uint32_t peer) {
  if (peer >= channels_.size() || channels_[peer].mode == Mode::unknown) return;
  Channel& ch = channels_[peer];
  release(peer);
  ch.seq = ch.seq == 0xFFFF ? std::uint16_t{1} : static_cast<std::uint16_t>(ch.seq + 1);
  due_.push_back({Due::Kind::revoke, peer, 0});
}

std::uint64_t CadenceReceiver::known_sent(const Channel& ch, std::uint32_t peer) const {
  return std::max(ch.sent_known, ch.rx_base + counters(peer).rx_bytes);
}

void CadenceReceiver::fill_grant(std::int64_t now, Channel& ch, std::uint32_t peer, bool revoked,
                                 GrantMessage& g) {
  const std::int64_t lease = lease_of(ch);
  const bool granted = ch.mode == Mode::active && ch.grant > 0;
  const std::uint64_t base = known_sent(ch, peer);
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
  g.unscheduled_budget = start_budget();
  // One sender cannot queue at a port as fast as its own: what it announced is under way.
  const std::uint64_t queue = listed_.size() > 1 ? debt_bytes_ : 0;
  g.queue_us = static_cast<std::uint8_t>(
      std::min<std::uint64_t>((queue * 8 + params_.link_mbps - 1) / params_.link_mbps, 255));
  g.active_senders = static_cast<std::uint16_t>(std::min(active_count_ + waiting_count_, 0xFFFFU));
  g.timestamp_echo_ns = ch.req_stamp;
  g.receiver_hold_ns =
      static_cast<std::uint32_t>(std::min<std::int64_t>(now - ch.req_at, 0xFFFF'FFFF));
  ch.sent_at = now;
  ++grants_sent_;
}

std::size_t CadenceReceiver::poll(Nanos now_ns, std::span<ReceiverOutput> out) {
  const std::int64_t now = now_ns.count;
  if (now >= scan_at_) scan(now);
  earn_credit(now);
  if (dirty_ || now >= retry_at_) {
    if (now >= may_allocate_at()) allocate(now);
  }

  std::size_t n = 0;
  for (; n < out.size() && due_head_ < due_.size(); ++n) {
    const Due due = due_[due_head_++];
    Channel& ch = channels_[due.peer];
    ReceiverOutput& o = out[n];
    o.peer = due.peer;
    if (due.kind == Due::Kind::grant || due.kind == Due::Kind::revoke) {
      o.kind = ReceiverOutput::Kind::grant;
      if (due.kind == Due::Kind::grant) ch.due = false;
      fill_grant(now, ch, due.peer, due.kind == Due::Kind::revoke, o.grant);
      if (due.kind == Due::Kind::grant) o.grant.effective_delay_us = due.value;
    } else {
      o.kind = ReceiverOutput::Kind::path;
      o.path = PathMessage{};
      o.path.channel = ch.channel;
      o.path.seq = ++ch.path_seq;
      o.path.bad_entropy = counters(due.peer).last_marked_entropy;
      if (due.kind == Due::Kind::quick) {
        o.path.quick_adapt_mbps = due.value;
      } else {
        o.path.alpha_q16 = static_cast<std::uint16_t>(due.value);
      }
      ++paths_sent_;
    }
  }
  if (n > 0) {
    credit_ns_ -= static_cast<std::int64_t>(n) * params_.control_ns;
  }
  if (due_head_ == due_.size()) {
    due_.clear();
    due_head_ = 0;
  }
  return n;
}

Nanos CadenceReceiver::next_wake() const {
  if (due_head_ < due_.size()) return Nanos{0};
  std::int64_t wake = scan_at_;
  if (dirty_) wake = std::min(wake, may_allocate_at());
  if (retry_at_ != kNeverNanos.count) {
    wake = std::min(wake, std::max(retry_at_, may_allocate_at()));
  }
  return Nanos{wake};
}

CadenceReceiver::Snapshot CadenceReceiver::snapshot() const {
  Snapshot s;
  s.committed_mbps = com_sum_;
  s.granted_mbps = grant_sum_;
  s.capacity_mbps = capacity_;
  s.foreign_mbps = foreign_mbps_;
  s.virtual_queue_bytes = debt_bytes_;
  s.active = active_count_;
  s.waiting = waiting_count_;
  s.start_budget_bytes = start_budget();
  s.grants_sent = grants_sent_;
  s.paths_sent = paths_sent_;
  s.allocations = allocations_;
  s.eta_cut_q6 = eta_cut_;
  return s;
}

}  // namespace paceline::cc
