// Shares of the downlink and the grants that follow from them.
#include <algorithm>
#include <bit>

#include "cc/cadence/receiver.h"

namespace paceline::cc {
namespace {

// Capacity that debt leaves to grants at the least: I4 holds under a flood of starts, too.
constexpr std::uint64_t kDebtFloor = 16;
constexpr std::int64_t kBeginRtts = 16;  // newcomers begin one after another within this
constexpr std::int64_t kRaiseRtts = 2;   // least time between increases of one channel...
constexpr std::uint32_t kLargeStep = 8;  // ... but of such a part of the link, or to twice
constexpr std::int64_t kTopUpRtts = 8;   // least time between general small increases
// Idle capacity worth a general increase of small amounts, of the link, and how often.
constexpr std::uint64_t kIdlePart = 64;
constexpr std::uint64_t kIdleCrumb = 256;
constexpr std::int64_t kCrumbRtts = 32;
constexpr std::uint32_t kStarvedPart = 8;  // of its share, that a channel may lack for long
// Among more channels it may lack more: what it lacks is spread over so many then that to agree
// with each costs more than it waits for (all-to-alls of 64 and 72 hosts: 3 and 11 %).
constexpr std::uint32_t kRelieved = 32;
// Among more channels than this a share is less than a packet in a round trip whoever it is for:
// then all are alike, and an allocation need not put them in order.
constexpr std::uint32_t kFavoured = 256;
constexpr std::int64_t kRefreshRtts = 2;
constexpr std::size_t kAhead = 8;  // channels fetched before their turn

// 1 or 0, computed: of a comparison that nothing predicts compilers make a branch where they like.
std::uint32_t is_less(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((std::uint64_t{a} - b) >> 63);
}

std::uint16_t next_seq(std::uint16_t seq) {
  return seq == 0xFFFF ? std::uint16_t{1} : static_cast<std::uint16_t>(seq + 1);
}

}  // namespace

std::uint64_t CadenceReceiver::plan() const {
  const std::uint64_t planned = plan_mbps(params_, listed_.size());
  return planned - planned * eta_cut_ / 64;
}

// Ceff: what grants may add up to now.
std::uint64_t CadenceReceiver::plan_capacity(std::int64_t now) {
  advance_debt(now);
  const std::uint64_t link = params_.link_mbps;
  const std::uint64_t planned = plan();
  const auto fair = static_cast<std::uint64_t>(params_.fair_floor * static_cast<double>(planned));
  std::uint64_t capacity = std::max(planned > foreign_mbps_ ? planned - foreign_mbps_ : 0, fair);
  // What is granted now arrives one round trip from now: the debt that is left then counts.
  const std::uint64_t busy = com_sum_ + foreign_mbps_;
  const std::uint64_t spare = busy < link ? bytes_at(link - busy, params_.rtt_ns) : 0;
  const std::uint64_t tolerated = params_.q_target_bytes + spare + bytes_before_fresh(now);
  if (debt_bytes_ > tolerated) forget_paid(now);
  if (debt_bytes_ > tolerated) {
    const std::uint64_t cut =
        (debt_bytes_ - tolerated) * 8000 / static_cast<std::uint64_t>(params_.drain_ns);
    capacity = std::max(capacity > cut ? capacity - cut : 0, capacity / kDebtFloor);
    retry_at_ = std::min(retry_at_, now + params_.rtt_ns / 2);
  }
  return capacity;
}

void CadenceReceiver::fill_active(std::int64_t now) {
  while (active_count_ < params_.max_active && waiting_head_ < waiting_.size()) {
    const std::uint32_t peer = waiting_[waiting_head_++];
    if (channels_[peer].mode != Mode::waiting) continue;  // left in the meantime
    --waiting_count_;
    activate(now, peer);
  }
  if (waiting_head_ == waiting_.size()) {
    waiting_.clear();
    waiting_head_ = 0;
  }
}

// I4: whoever was active long enough makes room for half an active set of waiting channels.
void CadenceReceiver::rotate(std::int64_t now) {
  if (waiting_count_ == 0) return;
  if (now < rotate_at_) {
    retry_at_ = std::min(retry_at_, rotate_at_);
    return;
  }
  rotate_at_ = now + params_.rotation_ns;
  retry_at_ = std::min(retry_at_, rotate_at_);
  std::uint32_t turns = std::min(waiting_count_, std::max(1U, params_.max_active / 2));
  if (active_count_ < params_.max_active)
    turns -= std::min(turns, params_.max_active - active_count_);
  const auto now_us = static_cast<std::uint32_t>(now / 1000);
  const auto age_us = static_cast<std::uint32_t>(params_.rotation_ns / 1000);
  for (std::size_t i = 0; i < listed_.size() && turns > 0; ++i) {
    const std::uint32_t peer = listed_[i];
    Channel& ch = channels_[peer];
    if (ch.mode != Mode::active || now_us - ch.turn_us < age_us) continue;
    decrease(now, peer, 0);
    --active_count_;
    enqueue(now, peer);
    --turns;
  }
}

void CadenceReceiver::decrease(std::int64_t now, std::uint32_t peer, std::uint32_t mbps,
                               bool later) {
  Channel& ch = channels_[peer];
  ch.old_lease_end = std::max(ch.old_lease_end, ch.lease_end);
  set_grant(ch, mbps);
  ch.seq = next_seq(ch.seq);
  ch.later = later;
  schedule_grant(peer, later ? static_cast<std::uint32_t>(params_.rtt_ns / 1000) : 0);
  scan_at_ = std::min(scan_at_, now + params_.rtt_ns * 5 / 4);
}

void CadenceReceiver::Slots::grow(std::size_t channels) {
  for (auto* column : {&peer, &limit, &share, &grant, &com}) column->resize(channels);
  weight.resize(channels);
  left.resize(channels);
}

// Active channels with demand, by peer. Returns the sum of their limits.
std::uint64_t CadenceReceiver::collect_slots() {
  const auto rtt = static_cast<std::uint64_t>(params_.rtt_ns);
  const std::uint64_t least = params_.min_grant_mbps;
  const std::uint64_t link = params_.link_mbps;
  const std::uint64_t ample = link * rtt / 8000 + 1;  // whatever the cap
  const bool favoured = active_count_ <= kFavoured && params_.little_weight != 1;
  std::uint64_t most_left = 0;
  // In locals: a weight that is written might be any member's byte.
  std::uint32_t* const peers = slots_.peer.data();
  std::uint32_t* const limits = slots_.limit.data();
  std::uint32_t* const grants = slots_.grant.data();
  std::uint32_t* const coms = slots_.com.data();
  std::uint8_t* const weights = slots_.weight.data();
  std::uint64_t* const lefts = slots_.left.data();
  const Channel* const channels = channels_.data();
  const std::size_t last = channels_.size() - 1;
  std::size_t at = 0;
  std::uint64_t wanted = 0;
  for (std::size_t word = 0; word < active_.size(); ++word) {
    static_assert(kCountersPerBlock == 64, "a block of counters for each word of bits");
    const ChannelCounters* const counted = counter_blocks_[word]->data();
    for (std::uint64_t bits = active_[word]; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      const std::size_t peer = word * 64 + bit;
      const Channel& ch = channels[peer];
      // Every other line is nothing that the processor would guess.
      __builtin_prefetch(&channels[std::min(peer + kAhead, last)]);
      const std::uint64_t sent = ch.rx_base + counted[bit].rx_bytes;
      const std::uint64_t left = ch.final_total > sent ? ch.final_total - sent : 0;
      std::uint64_t limit = std::min<std::uint64_t>(ch.tx_cap, link);
      // Demand bounds increases only: what is nearly finished is over before a decrease arrives.
      if (left < ample && left < limit * rtt / 8000 + 1) {
        limit = std::min(limit, std::max<std::uint64_t>(left * 8000 / rtt, ch.grant));
      }
      limit = std::max(limit, least);
      peers[at] = static_cast<std::uint32_t>(peer);
      limits[at] = static_cast<std::uint32_t>(limit);
      grants[at] = ch.grant;
      coms[at] = ch.com;
      weights[at] = 1;
      lefts[at] = left;
      most_left = std::max(most_left, left);
      ++at;
      wanted += limit;
    }
  }
  slots_.size = at;
  if (favoured && most_left >= bulk_bytes(params_)) {
    for (std::size_t slot = 0; slot < at; ++slot) {
      weights[slot] = static_cast<std::uint8_t>(favour(params_, lefts[slot]));
    }
  }
  return wanted;
}

// Demand is what a channel had when it last said so: a stream of small messages never has much. A
// grant of demand / T would stretch each of them to a round trip, so capacity that nobody asks for
// is lent: all of it to a lone channel, less the more channels there are, because what is lent must
// be called back, a round trip, before a newcomer can have it.
void CadenceReceiver::lend_idle(std::uint64_t idle) {
  const std::uint64_t each = idle / (slots_.size * slots_.size);
  if (each == 0) return;
  for (std::size_t at = 0; at < slots_.size; ++at) {
    const std::uint64_t most = std::min(channels_[slots_.peer[at]].tx_cap, params_.link_mbps);
    const std::uint64_t limit = slots_.limit[at];
    slots_.limit[at] =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(limit, std::min(limit + each, most)));
  }
}

// Channels in the order of limits lie all over: their lines come in while others are worked on.
void CadenceReceiver::fetch_channel(std::span<const std::uint32_t> slots, std::size_t place) const {
  if (place < slots.size()) __builtin_prefetch(&channels_[slots_.peer[slots[place]]], 1);
}

// Max-min shares, and whose grant they would change.
void CadenceReceiver::share_out(std::uint64_t capacity) {
  const std::size_t size = slots_.size;
  fill_.fill({slots_.limit.data(), size}, {slots_.weight.data(), size}, capacity,
             {slots_.share.data(), size});
  const std::uint32_t* const shares = slots_.share.data();
  const std::uint32_t* const grants = slots_.grant.data();
  std::uint32_t* above = above_.data();
  std::uint32_t* below = below_.data();
  for (std::uint32_t at = 0; at < size; ++at) {
    // Written whether or not they stay: which of the two it is cannot be predicted.
    *above = *below = at;
    above += is_less(shares[at], grants[at]);
    below += is_less(grants[at], shares[at]);
  }
  above_count_ = static_cast<std::size_t>(above - above_.data());
  below_count_ = static_cast<std::size_t>(below - below_.data());
}

// Without a grant any share is. Not a condition first: nothing predicts it.
bool CadenceReceiver::worth_raising(std::uint64_t share, std::uint32_t grant) const {
  return share > static_cast<std::uint32_t>((1 + params_.hysteresis) * static_cast<double>(grant));
}

// Those of `from` that pass, in the order of limits: where capacity is short, and when GRANTs
// leave one after another, little demand goes first. Written whether or not they stay, as in
// share_out.
template <class Passes>
std::span<const std::uint32_t> CadenceReceiver::select(std::span<const std::uint32_t> from,
                                                       Passes&& passes) {
  std::uint32_t* end = selected_.data();
  for (const std::uint32_t at : from) {
    *end = at;
    end += passes(at) ? 1 : 0;
  }
  const std::span<std::uint32_t> selected{selected_.data(), end};
  fill_.order(selected);
  return selected;
}

// Pass 1. Rates come down only where somebody else needs them.
void CadenceReceiver::lower(std::int64_t now, std::uint64_t capacity) {
  const std::uint64_t coming = com_sum_ - grant_sum_;  // decreases that wait for confirmation
  const std::uint32_t* const shares = slots_.share.data();
  std::uint64_t wanted = 0;
  std::uint32_t starved = 0;
  for (const std::uint32_t at : below()) {
    const std::uint32_t share = shares[at];
    const std::uint32_t com = slots_.com[at];
    const std::uint32_t worth = worth_raising(share, slots_.grant[at]) ? 1 : 0;
    const std::uint32_t lack = (share - com) & (0 - (worth & is_less(com, share)));
    wanted += lack;
    starved |= is_less(share / kStarvedPart, lack);
  }
  if (com_sum_ + wanted <= capacity + coming) return;
  std::uint64_t need = com_sum_ + wanted - capacity - coming;
  const bool relieve = starved != 0 && active_count_ <= kRelieved;
  // Who takes the place has its first byte here an RTT after the decrease is confirmed. Until then
  // the rate goes on, unless a queue is to drain or the port has more than it can carry.
  const bool later =
      debt_bytes_ <= params_.q_target_bytes && grant_sum_ + foreign_mbps_ <= params_.link_mbps;

  for (const bool any : {false, true}) {
    // The second round only when the coarse one is not nearly enough, or what is left falls on few:
    // who came last would have the rest of what all others have a little too much of, and as long.
    if (any && need <= (relieve ? 0 : capacity / kIdlePart)) break;
    const double part = any ? 1.0 : 1.0 - params_.hysteresis;
    // Below a bound that is 0 without a grant.
    const auto falls = select(above(), [this, shares, part](std::uint32_t at) {
      return shares[at] < static_cast<std::uint32_t>(part * static_cast<double>(slots_.grant[at]));
    });
    for (std::size_t i = 0; i < falls.size(); ++i) {
      fetch_channel(falls, i + kAhead);
      const std::uint32_t at = falls[i];
      const std::uint32_t freed = slots_.grant[at] - shares[at];
      decrease(now, slots_.peer[at], shares[at], later);
      slots_.grant[at] = shares[at];
      need -= std::min<std::uint64_t>(need, freed);
      if (any && need == 0) break;
    }
  }
}

// Raises one channel's grant towards its share, and what is committed to it from `room`.
void CadenceReceiver::lift(std::int64_t now, std::uint32_t at, std::uint64_t capacity,
                           std::uint64_t& room, std::uint32_t delay_us) {
  Channel& ch = channels_[slots_.peer[at]];
  const std::uint64_t share = slots_.share[at];
  const std::uint64_t target = std::min(share, ch.com + room);
  // A newcomer's first grant is worth waiting an RTT for; then it is at least half its share.
  if (target <= ch.grant || (ch.grant == 0 && target * 2 < share)) {
    retry_at_ = std::min(retry_at_, now + params_.rtt_ns);
    return;
  }
  if (target > ch.com) {
    room -= target - ch.com;
    fresh_mbps_[fresh_slot_] += static_cast<std::int64_t>(target - ch.com);
    set_com(ch, static_cast<std::uint32_t>(target));
    if (com_sum_ > capacity) worst_raise_ = std::max(worst_raise_, com_sum_ - capacity);
  }
  set_grant(ch, static_cast<std::uint32_t>(target));
  slots_.grant[at] = ch.grant;
  slots_.com[at] = ch.com;
  ch.seq = next_seq(ch.seq);
  schedule_grant(slots_.peer[at], delay_us);
}

// Pass 2. I1: whatever is added fits into the capacity beside everything committed.
void CadenceReceiver::raise(std::int64_t now, std::uint64_t capacity) {
  std::uint64_t room = capacity > com_sum_ ? capacity - com_sum_ : 0;
  const std::uint32_t* const shares = slots_.share.data();
  const std::uint32_t* const grants = slots_.grant.data();
  const std::uint32_t* const coms = slots_.com.data();

  // Newcomers of one allocation would all send at the same instant, again and again at equal
  // rates: each begins one packet time after the one before.
  const std::int64_t packet_ns = std::int64_t{params_.packet_bytes} * 8000 /
                                 std::max<std::int64_t>(1, static_cast<std::int64_t>(capacity));
  std::int64_t begin_ns = 0;
  for (const std::uint32_t at :
       select(below(), [grants](std::uint32_t slot) { return grants[slot] == 0; })) {
    const std::int64_t delay_ns = std::min(begin_ns, kBeginRtts * params_.rtt_ns);
    lift(now, at, capacity, room, static_cast<std::uint32_t>(delay_ns / 1000));
    begin_ns += packet_ns;
  }
  // What the share is not worth, less is not either; nor what is not within the room, which only
  // shrinks.
  bool small_left = false;
  const auto rises = select(below(), [&](std::uint32_t at) {
    const bool more = (grants[at] != 0) & (shares[at] > grants[at]);
    const std::uint64_t target = std::min<std::uint64_t>(shares[at], coms[at] + room);
    const bool worth = worth_raising(target, grants[at]);
    small_left |= more & !worth;
    return more & worth;
  });
  for (std::size_t i = 0; i < rises.size(); ++i) {
    fetch_channel(rises, i + kAhead);
    const std::uint32_t at = rises[i];
    const std::uint64_t target = std::min<std::uint64_t>(shares[at], coms[at] + room);
    if (!worth_raising(target, grants[at])) {
      small_left = true;
      continue;
    }
    const std::int64_t ready = channels_[slots_.peer[at]].sent_at + kRaiseRtts * params_.rtt_ns;
    const bool much = target >= 2 * std::uint64_t{grants[at]} ||
                      target - grants[at] >= params_.link_mbps / kLargeStep;
    if (now >= ready || much) {
      lift(now, at, capacity, room, 0);
    } else {
      retry_at_ = std::min(retry_at_, ready);
    }
  }
  // Many small differences can add up to much idle capacity: hand it out now and then.
  if (small_left && room > params_.link_mbps / kIdleCrumb) {
    const std::int64_t rest = room > params_.link_mbps / kIdlePart ? kTopUpRtts : kCrumbRtts;
    const std::int64_t ready = topped_at_ + rest * params_.rtt_ns;
    if (now < ready) {
      retry_at_ = std::min(retry_at_, ready);
      return;
    }
    topped_at_ = now;
    const auto crumbs = select(below(), [=](std::uint32_t at) {
      return (grants[at] > 0) & (coms[at] == grants[at]) & (shares[at] > grants[at]);
    });
    for (const std::uint32_t at : crumbs) lift(now, at, capacity, room, 0);
  }
}

void CadenceReceiver::allocate(std::int64_t now) {
  dirty_ = false;
  retry_at_ = kNeverNanos.count;
  alloc_at_ = now + params_.alloc_ns;
  ++allocations_;
  stood_mbps_ = std::min(stood_mbps_, com_sum_);
  stood_active_ = std::min(stood_active_, active_count_);
  if (params_new_) params_at_ = now;
  params_new_ = false;
  rotate(now);
  fill_active(now);
  dirty_ = false;  // the lists just changed by our own hand
  capacity_ = plan_capacity(now);

  const std::int64_t refresh =
      std::max(kRefreshRtts * params_.rtt_ns, std::int64_t{active_count_} * params_.control_ns);
  lease_ns_ = (std::max(4 * refresh, params_.lease_min_ns) + 999) / 1000 * 1000;

  const std::uint64_t wanted = collect_slots();
  if (slots_.size == 0) return;
  if (wanted < capacity_) lend_idle(capacity_ - wanted);
  share_out(capacity_);
  lower(now, capacity_);
  raise(now, capacity_);
}

}  // namespace paceline::cc
