// What time does to the allocator: leases, silence, measured rates, marks, debt.
#include <algorithm>

#include "cc/cadence/receiver.h"

namespace paceline::cc {
namespace {

constexpr std::int64_t kStartWindowRtts = 4;  // two of them: "the last 8 RTT"
constexpr std::int64_t kForeignRtts = 16;     // time constant of X
constexpr std::int64_t kReplanPart = 64;      // drift of the plan that is worth an allocation
constexpr std::int64_t kReplanRtts = 32;      // for less than that, this often
constexpr std::uint32_t kFullQ8 = 248;        // 0.97: a last-hop queue cannot persist below
constexpr std::uint32_t kEmptyQ8 = 230;       // 0.90: the port's queue was empty at some moment
// The standing-queue loop: a port that was marked and measures full over a long window drains a
// queue that no ledger knows of (uncounted bytes, a sender's clock, a wrong overhead). Full: a
// quarter of the margin and less is idle; three quarters: no queue. Without marks a full port is
// what is wanted: windows bound what stands there.
constexpr std::int64_t kLongRtts = 64;
constexpr std::uint32_t kMaxEtaCut = 8;
constexpr std::uint32_t kQuickQ16 = 32768;  // more than half of the packets marked
constexpr std::int64_t kQuickHoldRtts = 3;
constexpr std::int64_t kLeasePackets = 8;  // a lease outlives this many packets of its rate
// Arrivals are compared with what the port could carry over half an RTT at the least, and this at
// the most.
constexpr std::int64_t kMeasureRtts = 2;
constexpr std::uint64_t kIdlePackets = 2;  // fewer may be one that has not come as a whole yet
constexpr std::int64_t kHoldLeaseMaxNs = 60'000'000;

}  // namespace

// Two windows of 4 RTT each stand for "the last 8 RTT".
void CadenceReceiver::advance_windows(std::int64_t now) {
  const std::int64_t span = kStartWindowRtts * params_.rtt_ns;
  if (now < window_at_ + span) return;
  starts_before_ = now < window_at_ + 2 * span ? starts_now_ : 0;
  starts_now_ = 0;
  starts_both_ = 0;
  window_at_ = now;
  ++window_;
}

std::uint32_t CadenceReceiver::start_budget() const {
  // A channel that keeps starting is one competitor, however many windows it appears in.
  const std::uint32_t starts = std::max(1U, starts_now_ + starts_before_ - starts_both_);
  return std::max(params_.budget_bytes / starts, params_.packet_bytes);
}

void CadenceReceiver::pay_debt(std::int64_t span) {
  if (debt_bytes_ == 0 || span <= 0) return;
  std::int64_t fresh = 0;
  for (const std::int64_t mbps : fresh_mbps_) fresh += mbps;
  // One sender cannot put more into the port than its own link carries, granted and start bytes
  // together: what it was granted leaves its start bytes all the room they need.
  const std::int64_t arriving = static_cast<std::int64_t>(com_sum_) - fresh;
  const std::uint64_t granted =
      listed_.size() > 1 ? static_cast<std::uint64_t>(std::max<std::int64_t>(arriving, 0)) : 0;
  const std::uint64_t busy = granted + foreign_mbps_;
  if (busy >= params_.link_mbps) return;
  const std::uint64_t units = (params_.link_mbps - busy) * static_cast<std::uint64_t>(std::min(
                                                               span, std::int64_t{1} << 30)) +
                              debt_bits_left_;
  const std::uint64_t paid = units / 8000;
  debt_bits_left_ = units % 8000;
  debt_bytes_ -= std::min(debt_bytes_, paid);
}

// I3: the virtual queue shrinks by what the port can carry beyond everything promised that can
// have arrived: an increase fills the port one RTT after it was granted.
void CadenceReceiver::advance_debt(std::int64_t now) {
  const std::int64_t quarter = std::max<std::int64_t>(params_.rtt_ns / 4, 1);
  for (std::size_t i = 0; i <= fresh_mbps_.size() && now >= fresh_at_ + quarter; ++i) {
    const std::int64_t edge = i < fresh_mbps_.size() ? fresh_at_ + quarter : now;
    pay_debt(edge - debt_at_);
    debt_at_ = std::max(debt_at_, edge);
    fresh_at_ = edge;
    fresh_slot_ = (fresh_slot_ + 1) % fresh_mbps_.size();
    fresh_mbps_[fresh_slot_] = 0;  // a whole RTT old
  }
  pay_debt(now - debt_at_);
  debt_at_ = now;
}

void CadenceReceiver::add_debt(std::int64_t now, std::uint64_t bytes) {
  const std::int64_t quarter = now / std::max<std::int64_t>(params_.rtt_ns / 4, 1);
  const auto kept = static_cast<std::int64_t>(owed_.size());
  for (std::int64_t q = std::max(owed_quarter_ + 1, quarter - kept + 1); q <= quarter; ++q) {
    owed_[static_cast<std::size_t>(q % kept)] = 0;
  }
  owed_quarter_ = std::max(owed_quarter_, quarter);
  owed_[static_cast<std::size_t>(owed_quarter_ % kept)] += bytes;
  debt_bytes_ += bytes;
}

// What came into the debt from then on; what is older than the ring is left out.
std::uint64_t CadenceReceiver::owed_since(std::int64_t since) const {
  const auto kept = static_cast<std::int64_t>(owed_.size());
  const std::int64_t first = since / std::max<std::int64_t>(params_.rtt_ns / 4, 1);
  std::uint64_t bytes = 0;
  for (std::int64_t q = std::max({first, owed_quarter_ - kept + 1, std::int64_t{0}});
       q <= owed_quarter_; ++q) {
    bytes += owed_[static_cast<std::size_t>(q % kept)];
  }
  return bytes;
}

// The ledger believes that whoever is granted a rate sends at it. Where somebody does not, the port
// idles while the ledger still knows a queue. A port that idled has none, but of what was
// announced since, and an RTT before that: so long a start takes to get here.
void CadenceReceiver::forget_paid(std::int64_t now) {
  const std::int64_t span = now - measured_at_;
  if (2 * span < params_.rtt_ns) return;
  std::uint64_t total = other_bytes_ + foreign_bytes_;
  for (const std::uint32_t peer : listed_) total += counters(peer).rx_bytes;
  const std::uint64_t came = total - measured_bytes_;
  measured_bytes_ = total;
  measured_at_ = now;
  if (span > kMeasureRtts * params_.rtt_ns) return;  // too long ago to tell when it idled
  if (came + kIdlePackets * params_.packet_bytes > bytes_at(params_.link_mbps, span)) return;
  debt_bytes_ = std::min(debt_bytes_, owed_since(now - span - params_.rtt_ns));
}

// What drains until the increases of the last RTT have arrived.
std::uint64_t CadenceReceiver::bytes_before_fresh(std::int64_t now) const {
  const std::int64_t quarter = std::max<std::int64_t>(params_.rtt_ns / 4, 1);
  std::int64_t bytes = 0;
  for (std::size_t age = 0; age < fresh_mbps_.size(); ++age) {
    const std::size_t slot = (fresh_slot_ + fresh_mbps_.size() - age) % fresh_mbps_.size();
    const std::int64_t arrives =
        fresh_at_ +
        (static_cast<std::int64_t>(fresh_mbps_.size()) - static_cast<std::int64_t>(age)) * quarter;
    bytes += fresh_mbps_[slot] * std::max<std::int64_t>(arrives - now, 0) / 8000;
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
}

std::int64_t CadenceReceiver::lease_of(const Channel& ch) const {
  std::int64_t lease = lease_ns_;
  if (ch.mode == Mode::waiting) {
    lease = std::clamp(8 * std::int64_t{waiting_count_} * params_.control_ns, lease,
                       std::max(lease, kHoldLeaseMaxNs));
  } else if (ch.grant > 0) {
    lease = std::max(lease, kLeasePackets * params_.packet_bytes * 8000 / ch.grant);
  }
  return (lease + 999) / 1000 * 1000;
}

// Returns whether the channel still needs a look within an RTT (an unconfirmed decrease).
bool CadenceReceiver::scan_channel(std::int64_t now, std::uint32_t peer, std::int64_t) {
  Channel& ch = channels_[peer];
  const std::int64_t lease = lease_of(ch);
  const auto silent_us = static_cast<std::uint32_t>(now / 1000) - ch.heard_us;
  const std::int64_t silent = std::int64_t{silent_us} * 1000;
  const bool alive = silent < std::max(lease / 2, 8 * params_.rtt_ns);

  if (!alive && ch.mode == Mode::active && ch.grant > 0 && now >= ch.lease_end) {
    // No refresh was sent: the sender's lease is over, and it halves its rate from here.
    ch.old_lease_end = std::max(ch.old_lease_end, ch.lease_end);
    decrease(now, peer, std::min(ch.grant, params_.fallback_mbps));
    dirty_ = true;
  }
  if (!alive && silent > lease + std::max(10 * params_.rtt_ns, lease) && now >= ch.lease_end) {
    revoke(Nanos{now}, peer);
    unlist(peer);  // once: there is nothing more to take back
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
    if (alive && now >= ch.sent_at + params_.rtt_ns * 5 / 4) schedule_grant(peer);
    pending = alive;
  }
  if (alive && ch.mode == Mode::active && ch.grant > 0 &&
      ch.lease_end - params_.rtt_ns - now < lease / 2) {
    schedule_grant(peer);  // refresh
  }
  // Without a commitment it stays listed while its bytes arrive.
  if (ch.mode != Mode::active && ch.com == 0 && silent > 4 * params_.rtt_ns) unlist(peer);
  return pending;
}

// Congestion on the way although the port is not full is the path's.
void CadenceReceiver::attribute_path(std::int64_t now, const Marked& m) {
  Channel& ch = channels_[m.peer];
  const auto now_us = static_cast<std::uint32_t>(now / 1000);
  const std::uint32_t hold_us =
      static_cast<std::uint32_t>(kQuickHoldRtts * params_.rtt_ns / 1000) + 1;
  ch.alpha_q16 = static_cast<std::uint16_t>(std::min((ch.alpha_q16 + m.q16) / 2, 65535U));
  if (m.q16 > kQuickQ16 && now_us - ch.path_us >= hold_us && m.mbps > 0) {
    ch.path_us = now_us;
    due_.push_back({Due::Kind::quick, m.peer, m.mbps});
  } else if (now_us - ch.path_us >= hold_us) {
    due_.push_back({Due::Kind::alpha, m.peer, std::max<std::uint32_t>(ch.alpha_q16, 1)});
  }
}

void CadenceReceiver::watch_standing_queue(std::int64_t now, std::uint64_t bytes) {
  long_bytes_ += bytes;
  const std::int64_t span = now - long_at_;
  if (span < kLongRtts * params_.rtt_ns) return;
  const std::uint64_t full = bytes_at(params_.link_mbps, span);
  const std::uint64_t idle = full - std::min(long_bytes_, full);
  const std::uint64_t margin = bytes_at(params_.link_mbps - params_.eta_mbps, span);
  long_bytes_ = 0;
  long_at_ = now;
  const bool marked = long_marked_;
  long_marked_ = false;
  const bool explained = debt_bytes_ > 0 || now - charged_at_ < span;
  if (marked && !explained && 4 * idle <= margin && eta_cut_ < kMaxEtaCut) {
    ++eta_cut_;
    dirty_ = true;
  } else if (4 * idle > 3 * margin && eta_cut_ > 0) {
    --eta_cut_;
    dirty_ = true;
  }
}

void CadenceReceiver::scan(std::int64_t now) {
  const std::int64_t span = std::max<std::int64_t>(now - scanned_at_, 1);
  scanned_at_ = now;
  advance_debt(now);
  advance_windows(now);

  std::uint64_t rx = 0;
  std::uint64_t lapsed = 0;
  bool pending = false;
  marked_.clear();
  for (std::size_t i = listed_.size(); i > 0; --i) {  // backwards: unlist swaps with the last
    const std::uint32_t peer = listed_[i - 1];
    Channel& ch = channels_[peer];
    const ChannelCounters& c = counters(peer);
    const std::uint32_t bytes = static_cast<std::uint32_t>(c.rx_bytes) - ch.last_rx;
    const std::uint16_t packets = static_cast<std::uint16_t>(c.rx_packets - ch.last_packets);
    const std::uint16_t ce = static_cast<std::uint16_t>(c.ce_packets - ch.last_ce);
    ch.last_rx = static_cast<std::uint32_t>(c.rx_bytes);
    ch.last_packets = static_cast<std::uint16_t>(c.rx_packets);
    ch.last_ce = static_cast<std::uint16_t>(c.ce_packets);
    rx += bytes;
    if (bytes > 0) ch.heard_us = static_cast<std::uint32_t>(now / 1000);
    if (ce > 0 && packets > 0) {
      marked_.push_back({peer, std::uint32_t{ce} * 65535U / packets,
                         static_cast<std::uint32_t>(std::uint64_t{bytes} * 8000 /
                                                    static_cast<std::uint64_t>(span))});
    } else if (packets > 0) {
      ch.alpha_q16 = static_cast<std::uint16_t>(ch.alpha_q16 / 2);
    }
    // Data above what is committed comes from a sender in its fallback: foreign for the plan.
    const std::uint64_t committed = bytes_at(ch.com, span) + 2 * params_.packet_bytes;
    if (ch.echo != ch.seq && ch.com <= params_.fallback_mbps && bytes > committed) {
      lapsed += bytes - committed;
    }
    pending = scan_channel(now, peer, span) || pending;
  }

  const std::uint64_t foreign = foreign_bytes_ + lapsed;
  const auto uspan = static_cast<std::uint64_t>(span);
  last_util_q8_ = util_q8_;
  util_q8_ = static_cast<std::uint32_t>(
      std::min<std::uint64_t>((rx + foreign_bytes_) * 8000 / uspan * 256 / params_.link_mbps, 512));
  long_marked_ = long_marked_ || !marked_.empty();
  watch_standing_queue(now, rx + foreign_bytes_);
  other_bytes_ += foreign_bytes_;
  foreign_bytes_ = 0;
  const std::int64_t weight = std::min(span, kForeignRtts * params_.rtt_ns);
  const auto now_mbps = static_cast<std::int64_t>(foreign * 8000 / uspan);
  const auto before = static_cast<std::int64_t>(foreign_mbps_);
  foreign_mbps_ = static_cast<std::uint64_t>(before + (now_mbps - before) * weight /
                                                          (kForeignRtts * params_.rtt_ns));

  if (std::max(util_q8_, last_util_q8_) < kFullQ8) {
    for (const Marked& m : marked_) attribute_path(now, m);
  }
  // A port that was not busy has no queue left: the debt is paid, whatever the ledger says.
  if (debt_bytes_ > 0 && std::max(util_q8_, last_util_q8_) < kEmptyQ8 &&
      now - charged_at_ > 4 * params_.rtt_ns) {
    debt_bytes_ = 0;
    dirty_ = true;
  }
  // The plan moves with X: give back at once what it lacks, hand out what it gained.
  const std::int64_t gap = static_cast<std::int64_t>(plan()) -
                           static_cast<std::int64_t>(foreign_mbps_) -
                           static_cast<std::int64_t>(com_sum_);
  const std::int64_t part = params_.link_mbps / kReplanPart;
  if (active_count_ > 0 && gap < -part && capacity_ > 0) dirty_ = true;
  if (active_count_ > 0 && gap > part / 2) {
    const std::int64_t rest = gap > part ? 8 : kReplanRtts;
    retry_at_ = std::min(retry_at_, std::max(now, alloc_at_ + rest * params_.rtt_ns));
  }
  const std::int64_t next = pending ? params_.rtt_ns * 5 / 4 : 2 * params_.rtt_ns;
  scan_at_ = listed_.empty() ? kNeverNanos.count : now + next;
}

}  // namespace paceline::cc
