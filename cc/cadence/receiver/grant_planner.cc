#include "cc/cadence/receiver/grant_planner.h"

#include <algorithm>
#include <bit>

namespace paceline::cc::cadence {
namespace {

constexpr std::int64_t kBeginRtts = 16;  // newcomers begin one after another within this
constexpr std::int64_t kRaiseRtts = 2;   // least time between increases of one channel...
constexpr std::uint32_t kLargeStep = 8;  // ... but of such a part of the link, or to twice
constexpr std::size_t kAhead = 8;        // channels fetched before their turn

// 1 or 0, computed: of a comparison that nothing predicts compilers make a branch where they like.
std::uint32_t is_less(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((std::uint64_t{a} - b) >> 63);
}

// Without a grant any share is. Not a condition first: nothing predicts it.
bool worth_raising(const CadenceParams& p, std::uint64_t share, std::uint32_t grant) {
  return share > static_cast<std::uint32_t>((1 + p.hysteresis) * static_cast<double>(grant));
}

}  // namespace

void GrantPlanner::grow(std::size_t channels) {
  Slots& s = slots_;
  for (auto* column :
       {&s.peer, &s.limit, &s.share, &s.grant, &s.com, &above_, &below_, &selected_}) {
    column->resize(channels);
  }
  s.weight.resize(channels);
  s.left.resize(channels);
  fill_.reserve(channels);
}

// Active channels, by peer.
void GrantPlanner::collect(const Round& r) {
  const std::uint32_t least = r.params.min_grant_mbps;
  const std::uint32_t link = r.params.link_mbps;
  std::uint64_t most_left = 0;
  // In locals: a weight that is written might be any member's byte.
  std::uint32_t* const peers = slots_.peer.data();
  std::uint32_t* const limits = slots_.limit.data();
  std::uint32_t* const grants = slots_.grant.data();
  std::uint32_t* const coms = slots_.com.data();
  std::uint8_t* const weights = slots_.weight.data();
  std::uint64_t* const lefts = slots_.left.data();
  const Channel* const channels = &r.table[0];
  const std::size_t last = r.table.size() - 1;
  const std::span<const std::uint64_t> active = r.table.active_bits();
  std::size_t at = 0;
  for (std::size_t word = 0; word < active.size(); ++word) {
    static_assert(ChannelTable::kCountersPerBlock == 64,
                  "a block of counters for each word of bits");
    const ChannelCounters* const counted = &r.table.counters(static_cast<std::uint32_t>(word) * 64);
    for (std::uint64_t bits = active[word]; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      const std::size_t peer = word * 64 + bit;
      const Channel& ch = channels[peer];
      // Every other line is nothing that the processor would guess.
      __builtin_prefetch(&channels[std::min(peer + kAhead, last)]);
      const std::uint64_t sent = ch.rx_base + counted[bit].rx_bytes;
      const std::uint64_t left = ch.final_total > sent ? ch.final_total - sent : 0;
      peers[at] = static_cast<std::uint32_t>(peer);
      limits[at] = std::max(std::min(ch.tx_cap, link), least);
      grants[at] = ch.grant;
      coms[at] = ch.com;
      weights[at] = 1;
      lefts[at] = left;
      most_left = std::max(most_left, left);
      ++at;
    }
  }
  slots_.size = at;
  if (r.params.little_weight != 1 && most_left >= bulk_bytes(r.params)) {
    for (std::size_t slot = 0; slot < at; ++slot) {
      weights[slot] = static_cast<std::uint8_t>(favour(r.params, lefts[slot]));
    }
  }
}

// Channels in the order of limits lie all over: their lines come in while others are worked on.
void GrantPlanner::fetch_channel(const Round& r, std::span<const std::uint32_t> slots,
                                 std::size_t place) const {
  if (place < slots.size()) __builtin_prefetch(&r.table[slots_.peer[slots[place]]], 1);
}

// Max-min shares, and whose grant they would change.
void GrantPlanner::share_out(std::uint64_t capacity) {
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

// Those of `from` that pass, in the order of limits: where capacity is short, and when GRANTs
// leave one after another, little demand goes first. Written whether or not they stay, as in
// share_out.
template <class Passes>
std::span<const std::uint32_t> GrantPlanner::select(std::span<const std::uint32_t> from,
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

// Pass 1. Rates come down only where somebody else needs them. Small differences do so only for a
// channel that has less than half of its share: who comes last, to many, would have nothing (I4).
void GrantPlanner::lower(const Round& r) {
  // Decreases that wait for confirmation.
  const std::uint64_t coming = r.table.committed() - r.table.granted();
  const std::uint32_t* const shares = slots_.share.data();
  std::uint64_t wanted = 0;
  std::uint32_t starved = 0;
  for (const std::uint32_t at : below()) {
    starved |= is_less(2 * slots_.com[at], shares[at]);
    const std::uint32_t worth = worth_raising(r.params, shares[at], slots_.grant[at]) ? 1 : 0;
    wanted += (shares[at] - slots_.com[at]) & (0 - (worth & is_less(slots_.com[at], shares[at])));
  }
  if (r.table.committed() + wanted <= r.capacity + coming) return;
  const double part = starved != 0 ? 1.0 : 1.0 - r.params.hysteresis;
  const auto falls = select(above(), [this, shares, part](std::uint32_t at) {
    return shares[at] < static_cast<std::uint32_t>(part * static_cast<double>(slots_.grant[at]));
  });
  for (std::size_t i = 0; i < falls.size(); ++i) {
    fetch_channel(r, falls, i + kAhead);
    const std::uint32_t at = falls[i];
    const std::uint32_t peer = slots_.peer[at];
    r.table.lower(r.table[peer], shares[at]);
    r.table.push_grant(peer);
    slots_.grant[at] = shares[at];
    outcome_.lowered = true;
  }
}

// Raises one channel's grant towards its share, and what is committed to it from `room`.
void GrantPlanner::lift(const Round& r, std::uint32_t at, std::uint64_t& room,
                        std::uint32_t delay_us) {
  Channel& ch = r.table[slots_.peer[at]];
  const std::uint64_t share = slots_.share[at];
  const std::uint64_t target = std::min(share, ch.com + room);
  // A newcomer's first grant is worth waiting an RTT for; then it is at least half its share.
  if (target <= ch.grant || (ch.grant == 0 && target * 2 < share)) {
    retry(r.now + r.params.rtt_ns);
    return;
  }
  if (target > ch.com) {
    room -= target - ch.com;
    r.table.set_com(ch, static_cast<std::uint32_t>(target));
    const std::uint64_t committed = r.table.committed();
    if (committed > r.capacity) worst_raise_ = std::max(worst_raise_, committed - r.capacity);
  }
  r.table.set_grant(ch, static_cast<std::uint32_t>(target));
  slots_.grant[at] = ch.grant;
  slots_.com[at] = ch.com;
  ch.next_seq();
  r.table.push_grant(slots_.peer[at], delay_us);
}

// Pass 2. I1: whatever is added fits into the capacity beside everything committed.
void GrantPlanner::raise(const Round& r) {
  std::uint64_t room = r.capacity > r.table.committed() ? r.capacity - r.table.committed() : 0;
  const std::uint32_t* const shares = slots_.share.data();
  const std::uint32_t* const grants = slots_.grant.data();
  const std::uint32_t* const coms = slots_.com.data();

  // Newcomers of one allocation would all send at the same instant, again and again at equal
  // rates: each begins one packet time after the one before.
  const std::int64_t packet_ns = std::int64_t{r.params.packet_bytes} * 8000 /
                                 std::max<std::int64_t>(1, static_cast<std::int64_t>(r.capacity));
  std::int64_t begin_ns = 0;
  for (const std::uint32_t at :
       select(below(), [grants](std::uint32_t slot) { return grants[slot] == 0; })) {
    const std::int64_t delay_ns = std::min(begin_ns, kBeginRtts * r.params.rtt_ns);
    lift(r, at, room, static_cast<std::uint32_t>(delay_ns / 1000));
    begin_ns += packet_ns;
  }
  const auto rises = select(below(), [&](std::uint32_t at) {
    const std::uint64_t target = std::min<std::uint64_t>(shares[at], coms[at] + room);
    return (grants[at] != 0) & worth_raising(r.params, target, grants[at]);
  });
  for (std::size_t i = 0; i < rises.size(); ++i) {
    fetch_channel(r, rises, i + kAhead);
    const std::uint32_t at = rises[i];
    const std::uint64_t target = std::min<std::uint64_t>(shares[at], coms[at] + room);
    if (!worth_raising(r.params, target, grants[at])) continue;  // others took the room
    const std::int64_t ready = r.table[slots_.peer[at]].sent_at + kRaiseRtts * r.params.rtt_ns;
    const bool much = target >= 2 * std::uint64_t{grants[at]} ||
                      target - grants[at] >= r.params.link_mbps / kLargeStep;
    if (r.now >= ready || much) {
      lift(r, at, room, 0);
    } else {
      retry(ready);
    }
  }
}

GrantPlanner::Outcome GrantPlanner::plan(const Round& r) {
  outcome_ = {};
  if (r.table.active() == 0) return outcome_;
  collect(r);
  share_out(r.capacity);
  lower(r);
  raise(r);
  return outcome_;
}

}  // namespace paceline::cc::cadence
