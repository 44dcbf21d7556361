#include "cc/eqds/receiver.h"

#include <algorithm>

#include "cc/grants/channel_units.h"
#include "cc/param_block.h"

namespace paceline::cc {
namespace {

// A REQUEST that looks old after this long is not late: the sender's numbering has restarted.
constexpr std::int64_t kEqdsRestartRtts = 16;
// A sender that uses nothing of its credit and says nothing for this long loses its turns until it
// asks again.
constexpr std::int64_t kSilentRtts = 64;
// Turns checked per pull; senders that hold too much credit are skipped.
constexpr std::uint32_t kTurnsLookedAt = 64;

}  // namespace

void EqdsReceiver::set_params(const ParamBlock& params) { params_ = params.as<EqdsParams>(); }

void EqdsReceiver::grow(std::uint32_t peer) {
  if (peer < channels_.size()) return;
  channels_.resize(peer + 1);
  while (counter_blocks_.size() * kCountersPerBlock <= peer) {
    counter_blocks_.push_back(std::make_unique<std::array<ChannelCounters, kCountersPerBlock>>());
  }
  due_.reserve(channels_.size());
  idle_.reserve(channels_.size());
}

// The used part of its credit, at most all of it.
std::uint64_t EqdsReceiver::used(const Channel& ch, std::uint32_t peer) const {
  const ChannelCounters& c = counters(peer);
  return std::min(std::max(ch.sent_total, ch.rx_base + c.rx_bytes + c.trimmed_bytes),
                  ch.limit_total);
}

void EqdsReceiver::set_idle_bytes(Channel& ch) {
  const std::uint64_t before = ch.idle_bytes;
  ch.idle_bytes = ch.limit_total > ch.final_total ? ch.limit_total - ch.final_total : 0;
  idle_sum_ = idle_sum_ - before + ch.idle_bytes;
}

// The ring of turns: a new one is last, behind the one whose turn it is.
void EqdsReceiver::activate(std::int64_t now, std::uint32_t peer) {
  Channel& ch = channels_[peer];
  if (ch.active) return;
  ch.active = true;
  if (active_count_++ == 0) {
    clock_ = std::max(clock_, now);  // an idle pacer gathers nothing
    polled_at_ = now;
    marks_at_ = std::max(marks_at_, now + params_.rtt_ns * 3 / 2);
    turn_ = ch.next = ch.prev = peer;
    return;
  }
  Channel& first = channels_[turn_];
  ch.next = turn_;
  ch.prev = first.prev;
  channels_[first.prev].next = peer;
  first.prev = peer;
}

void EqdsReceiver::deactivate(std::uint32_t peer) {
  Channel& ch = channels_[peer];
  if (!ch.active) return;
  ch.active = false;
  if (--active_count_ == 0) {
    turn_ = kNone;
  } else {
    channels_[ch.prev].next = ch.next;
    channels_[ch.next].prev = ch.prev;
    if (turn_ == peer) turn_ = ch.next;
  }
  ch.next = ch.prev = kNone;
}

void EqdsReceiver::offer_idle(std::uint32_t peer) {
  Channel& ch = channels_[peer];
  if (ch.idle || params_.idle_credit_bytes < params_.packet_bytes) return;
  ch.idle = true;
  idle_.push_back(peer);
}

void EqdsReceiver::schedule(std::uint32_t peer) {
  if (channels_[peer].due) return;
  channels_[peer].due = true;
  due_.push_back(peer);
}

void EqdsReceiver::open(Channel& ch, std::uint32_t peer, const RequestMessage& r) {
  deactivate(peer);
  ch.final_total = ch.limit_total;
  set_idle_bytes(ch);
  const bool idle = ch.idle;
  const bool due = ch.due;
  ch = Channel{};
  ch.idle = idle;
  ch.due = due;
  ch.known = true;
  ch.channel = r.channel;
  ch.seq = r.grant_echo;  // a sender that outlived its receiver continues from its numbers
  ch.sent_total = r.sent_total;
  ch.unscheduled_total = r.unscheduled_total;
  // In a channel's first message, everything authorised so far is what it announced.
  const std::uint64_t announced =
      std::min(r.unscheduled_total, r.sent_total + 2 * std::uint64_t{params_.first_window_bytes});
  ch.limit_total = std::max(r.sent_total, announced);
  const ChannelCounters& c = counters(peer);
  ch.rx_base = r.sent_total - c.rx_bytes - c.trimmed_bytes;
  ch.last_packets = c.rx_packets;
  ch.last_ce = c.ce_packets;
  ch.last_trimmed = c.trimmed_bytes;
}

void EqdsReceiver::close(std::uint32_t peer) {
  Channel& ch = channels_[peer];
  deactivate(peer);
  ch.final_total = ch.limit_total;
  set_idle_bytes(ch);
  ch.known = false;
}

std::int64_t EqdsReceiver::link_ns(std::uint64_t bytes) const {
  return static_cast<std::int64_t>(bytes * 8000 / params_.link_mbps);
}

// Bytes are pulled at the present pace; a rest of less than a nanosecond is kept for the next pull.
void EqdsReceiver::take_off(std::uint64_t bytes) {
  const auto mbps = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(static_cast<double>(params_.pull_mbps) * pace_));
  clock_rest_ = std::min(clock_rest_, mbps - 1) + bytes * 8000;
  clock_ += static_cast<std::int64_t>(clock_rest_ / mbps);
  clock_rest_ %= mbps;
}

// Charges bytes that come without credit. Bytes of a first round trip arrive before any that are
// pulled now.
void EqdsReceiver::charge_start(std::int64_t now, std::uint64_t bytes) {
  if (!params_.charge_start || bytes == 0) return;
  const std::uint64_t believed =
      std::min<std::uint64_t>(bytes, 2 * std::uint64_t{params_.first_window_bytes});
  clock_ = std::max(clock_, now - params_.rtt_ns) + link_ns(believed);
  start_until_ = std::max(start_until_, clock_ + params_.rtt_ns);
}

ChannelCounters* EqdsReceiver::on_request(Nanos now_ns, std::uint32_t peer,
                                          const RequestMessage& r) {
  const std::int64_t now = now_ns.count;
  grow(peer);
  Channel& ch = channels_[peer];
  ChannelCounters* const result = &counters(peer);
  const bool fresh = !ch.known || ch.channel != r.channel;
  const bool old = !fresh && static_cast<std::int16_t>(r.req_seq - ch.req_seq) <= 0;
  if (old && now - ch.req_at < kEqdsRestartRtts * params_.rtt_ns) return result;
  if (r.close) {
    if (!fresh) close(peer);
    return result;
  }
  const std::uint64_t sent = fresh ? r.sent_total : extend_total(ch.sent_total, r.sent_total);
  // Arrived bytes were sent. A sender that reports far fewer has restarted its totals.
  const std::uint64_t forgiven =
      std::uint64_t{params_.max_credit_bytes} + params_.first_window_bytes;
  const bool anew = sent < ch.sent_total ||
                    ch.rx_base + result->rx_bytes + result->trimmed_bytes > sent + forgiven;
  if (fresh || old || anew) {
    open(ch, peer, r);
    charge_start(now, r.sent_total <= r.unscheduled_total ? r.unscheduled_total : 0);
  } else {
    const std::uint64_t unscheduled = extend_total(ch.unscheduled_total, r.unscheduled_total);
    const std::uint64_t start =
        unscheduled > ch.unscheduled_total ? unscheduled - ch.unscheduled_total : 0;
    ch.unscheduled_total += start;
    ch.sent_total = sent;
    // The sender added it to its credit, or to what it had sent when it was without any.
    ch.limit_total = std::max(ch.limit_total + start, sent);
    charge_start(now, start);
    // REQUESTs go before data: an excess belongs to no total of this channel. After a loss, bytes
    // in flight count as arrived, too, or the lost bytes would stay unused credit for ever. If some
    // arrive after all, the next REQUEST takes them off again.
    const std::uint64_t arrived = ch.rx_base + result->rx_bytes + result->trimmed_bytes;
    if (arrived > sent || r.lost) ch.rx_base += sent - arrived;
  }
  ch.req_seq = r.req_seq;
  ch.req_stamp = r.timestamp_ns;
  ch.req_at = ch.moved_at = now;
  ch.cap_mbps = std::min(r.tx_cap_mbps, params_.link_mbps);
  ch.final_total = ch.sent_total + r.demand_bytes;
  set_idle_bytes(ch);

  if (ch.final_total <= ch.limit_total) {
    deactivate(peer);
    const bool missed = ch.seq != 0 && r.grant_echo != ch.seq && r.demand_bytes != 0;
    if (missed && now - ch.granted_at > params_.rtt_ns * 3 / 2) schedule(peer);
    offer_idle(peer);
    return result;
  }
  activate(now, peer);
  // A sender whose turn is far off is told, or it would think that nobody hears it.
  if (wait_ns(now) > params_.rtt_ns) schedule(peer);
  return result;
}

void EqdsReceiver::forget(Nanos, std::uint32_t peer) {
  if (peer >= channels_.size()) return;
  close(peer);
  std::erase(due_, peer);
  std::erase(idle_, peer);
  channels_[peer] = Channel{};
  counters(peer) = ChannelCounters{};
}

// The time until a sender's turn comes, as far as is known now.
std::int64_t EqdsReceiver::wait_ns(std::int64_t now) const {
  const std::int64_t turns = link_ns(std::uint64_t{params_.pull_bytes} * active_count_);
  return std::max<std::int64_t>(clock_ - now, 0) +
         static_cast<std::int64_t>(static_cast<double>(turns) / pace_);
}

// Accounts for bytes since the last poll that came without credit or were trimmed.
void EqdsReceiver::account(std::int64_t now) {
  const std::int64_t span = std::max<std::int64_t>(now - polled_at_, 0);
  const auto most = static_cast<std::int64_t>(params_.foreign_most * static_cast<double>(span));
  const std::int64_t taken = std::min(link_ns(unaccounted_bytes_), most);
  clock_ += taken;
  // The rest is carried over to the next poll, up to one path's bytes.
  const std::uint64_t counted = bytes_at(params_.link_mbps, taken + 1);
  unaccounted_bytes_ = std::min<std::uint64_t>(
      unaccounted_bytes_ - std::min(unaccounted_bytes_, counted), params_.bdp_bytes);
  if (params_.charge_start && trimmed_bytes_ != 0) {
    const std::int64_t back = link_ns(trimmed_bytes_);
    clock_ = std::max(clock_ - back, std::min(clock_, now - params_.rtt_ns));
    start_until_ -= back;
  }
  trimmed_bytes_ = 0;
  clock_ = std::max(clock_, now - params_.rtt_ns);
  polled_at_ = now;
}

void EqdsReceiver::heed_marks(std::int64_t now) {
  if (now < marks_at_) return;
  marks_at_ = now + params_.rtt_ns * 3 / 2;
  std::uint64_t packets = 0;
  double bad = 0;
  for (std::uint32_t peer = 0; peer < channels_.size(); ++peer) {
    Channel& ch = channels_[peer];
    if (!ch.known) continue;
    const ChannelCounters& c = counters(peer);
    packets += c.rx_packets - ch.last_packets;
    bad += c.ce_packets - ch.last_ce;
    bad += static_cast<double>(c.trimmed_bytes - ch.last_trimmed) / params_.packet_bytes;
    ch.last_packets = c.rx_packets;
    ch.last_ce = c.ce_packets;
    ch.last_trimmed = c.trimmed_bytes;
  }
  // Speculative bytes pass: marks say nothing about pulls.
  if (!params_.ecn_feedback || packets == 0 || now < start_until_) return;
  const double share = std::min(1.0, bad / static_cast<double>(packets));
  marked_ = (marked_ + share) / 2;
  if (marked_ > params_.ecn_target) {
    pace_ *= 1 - (marked_ - params_.ecn_target) / 2;
    calm_ = 0;
  } else {
    calm_ = share > 0 ? 0 : std::min(calm_ + 1, 7U);
    pace_ += 0.01 * (1U << (calm_ == 0 ? 0 : calm_ - 1));
  }
  pace_ = std::clamp(pace_, params_.least_pull, 1.0);
}

// Whether the sender may have its turn now. A silent sender leaves the ring.
bool EqdsReceiver::may_pull(std::int64_t now, Channel& ch, std::uint32_t peer) {
  const std::uint64_t done = used(ch, peer);
  if (done != ch.used_seen) {
    ch.used_seen = done;
    ch.moved_at = now;
  }
  const std::uint64_t share =
      std::uint64_t{params_.max_credit_bytes} * ch.cap_mbps / params_.link_mbps;
  const std::uint64_t most = std::max<std::uint64_t>(share, 2 * std::uint64_t{params_.pull_bytes});
  if (ch.limit_total - done + params_.pull_bytes <= most) return true;
  if (now - ch.moved_at > kSilentRtts * params_.rtt_ns) deactivate(peer);
  return false;
}

std::uint32_t EqdsReceiver::next_to_pull(std::int64_t now) {
  const std::uint32_t looks = std::min(active_count_, kTurnsLookedAt);
  for (std::uint32_t i = 0; i < looks && active_count_ != 0; ++i) {
    const std::uint32_t peer = turn_;
    turn_ = channels_[peer].next;
    if (may_pull(now, channels_[peer], peer)) return peer;
  }
  return kNone;
}

void EqdsReceiver::pull(std::uint32_t peer) {
  Channel& ch = channels_[peer];
  const std::uint64_t bytes =
      std::min<std::uint64_t>(params_.pull_bytes, ch.final_total - ch.limit_total);
  ch.limit_total += bytes;
  take_off(bytes);
  if (ch.limit_total == ch.final_total) {
    deactivate(peer);
    offer_idle(peer);
  }
}

// Sends one GRANT for all idle credit that may be given.
bool EqdsReceiver::serve_idle() {
  Channel& ch = channels_[idle_.front()];
  const std::uint64_t bytes =
      params_.idle_credit_bytes > idle_sum_ ? params_.idle_credit_bytes - idle_sum_ : 0;
  if (!ch.known || ch.active || bytes < params_.packet_bytes) return false;
  ch.limit_total += bytes;
  take_off(bytes);
  set_idle_bytes(ch);
  return true;
}

void EqdsReceiver::fill(std::int64_t now, std::uint32_t peer, ReceiverOutput& out) {
  Channel& ch = channels_[peer];
  ch.seq = ch.seq == 0xFFFF ? std::uint16_t{1} : static_cast<std::uint16_t>(ch.seq + 1);
  ch.granted_at = now;
  out.peer = peer;
  GrantMessage& g = out.grant;
  g = GrantMessage{};
  g.credit = true;
  g.hold = ch.final_total > ch.limit_total;
  g.channel = ch.channel;
  g.grant_seq = ch.seq;
  g.limit_total = ch.limit_total & kTotalMask;
  g.active_senders = static_cast<std::uint16_t>(std::min(active_count_, 0xFFFFU));
  g.rate_mbps = std::max(1U, params_.pull_mbps / std::max(active_count_, 1U));
  g.lease_us = static_cast<std::uint32_t>((2 * wait_ns(now) + 2 * params_.rtt_ns) / 1000 + 1);
  g.unscheduled_budget =
      std::max(params_.first_window_bytes / std::max(active_count_, 1U), params_.packet_bytes);
  g.timestamp_echo_ns = ch.req_stamp;
  g.receiver_hold_ns =
      static_cast<std::uint32_t>(std::min<std::int64_t>(now - ch.req_at, 0xFFFF'FFFF));
}

std::size_t EqdsReceiver::poll(Nanos now_ns, std::span<ReceiverOutput> out) {
  const std::int64_t now = now_ns.count;
  account(now);
  if (active_count_ != 0) heed_marks(now);
  std::size_t n = 0;
  std::size_t told = 0;
  for (; n < out.size() && told < due_.size(); ++told) {
    channels_[due_[told]].due = false;
    if (channels_[due_[told]].known) fill(now, due_[told], out[n++]);
  }
  due_.erase(due_.begin(), due_.begin() + static_cast<std::ptrdiff_t>(told));
  while (n < out.size() && active_count_ != 0 && clock_ <= now) {
    const std::uint32_t peer = next_to_pull(now);
    if (peer == kNone) {  // all hold as much as they may: look again after one pull's time
      clock_ = now + link_ns(params_.pull_bytes);
      break;
    }
    pull(peer);
    fill(now, peer, out[n++]);
  }
  while (n < out.size() && active_count_ == 0 && !idle_.empty() && clock_ <= now) {
    const std::uint32_t peer = idle_.front();
    const bool given = serve_idle();
    channels_[peer].idle = false;
    idle_.erase(idle_.begin());
    if (given) fill(now, peer, out[n++]);
  }
  return n;
}

Nanos EqdsReceiver::next_wake() const {
  if (!due_.empty()) return Nanos{0};
  if (active_count_ == 0 && idle_.empty()) return kNeverNanos;
  // Trimmed packets may make the next pull due earlier; poll() finds out.
  return Nanos{active_count_ == 0 ? clock_ : std::min(clock_, polled_at_ + params_.rtt_ns / 4)};
}

std::string EqdsReceiver::check_invariants(Nanos) const {
  const auto fault = [](const char* what, std::uint64_t peer, std::uint64_t a, std::uint64_t b) {
    return "eqds pacer: " + std::string(what) + " of " + std::to_string(peer) + ": " +
           std::to_string(a) + " against " + std::to_string(b);
  };
  std::uint32_t active = 0;
  std::uint64_t idle = 0;
  for (std::uint32_t peer = 0; peer < channels_.size(); ++peer) {
    const Channel& ch = channels_[peer];
    if (!ch.known) {
      if (ch.active) return fault("turn without a channel", peer, 1, 0);
      continue;
    }
    idle += ch.idle_bytes;
    active += ch.active ? 1 : 0;
    if (ch.active != (ch.next != kNone)) return fault("ring", peer, ch.active, ch.next);
    if (ch.active && ch.limit_total >= ch.final_total) {
      return fault("a turn without demand", peer, ch.limit_total, ch.final_total);
    }
    if (ch.sent_total > ch.limit_total) {
      return fault("sent beyond its credit", peer, ch.sent_total, ch.limit_total);
    }
  }
  if (active != active_count_) return fault("active senders", 0, active, active_count_);
  if (idle != idle_sum_) return fault("idle credit", 0, idle, idle_sum_);
  return {};
}

}  // namespace paceline::cc
