#include "cc/cadence/receiver/grant_planner.h"

namespace paceline::cc::cadence {
namespace {

constexpr std::int64_t kBeginRtts = 16;  // newcomers begin one after another within this
constexpr std::int64_t kRaiseRtts = 2;   // least time between increases of one channel...
constexpr std::uint32_t kLargeStep = 8;  // ... but of such a part of the link, or to twice

bool worth_raising(const CadenceParams& p, std::uint64_t share, std::uint32_t grant) {
  return share > static_cast<std::uint32_t>((1 + p.hysteresis) * static_cast<double>(grant));
}

}  // namespace

void GrantPlanner::collect(const Round& r) {
  parties_.clear();
  bool bulk = false;
  for (const std::uint32_t peer : r.table.listed()) {
    const Channel& ch = r.table[peer];
    if (ch.mode != Channel::Mode::active) continue;
    const std::uint64_t left = r.table.left(peer);
    bulk |= left >= bulk_bytes(r.params);
    parties_.push_back({.id = peer,
                        .limit = std::min(ch.tx_cap, r.params.link_mbps),
                        .weight = favour(r.params, left)});
  }
  if (bulk) return;
  for (Party& party : parties_) party.weight = 1;
}

// Rates are lowered only where another channel needs them. Small differences lower them only for a
// channel that has less than half of its share: otherwise the last of many channels would get
// nothing (I4).
void GrantPlanner::lower(const Round& r) {
  std::uint64_t wanted = 0;
  bool starved = false;
  for (const Party& party : parties_) {
    const Channel& ch = r.table[party.id];
    if (party.share <= ch.grant) continue;
    starved |= 2 * ch.com < party.share;
    if (party.share > ch.com && worth_raising(r.params, party.share, ch.grant)) {
      wanted += party.share - ch.com;
    }
  }
  // Decreases that wait for confirmation will make room.
  if (r.table.granted() + wanted <= r.capacity) return;
  const double part = starved ? 1.0 : 1.0 - r.params.hysteresis;
  for (const Party& party : parties_) {
    Channel& ch = r.table[party.id];
    const auto least = static_cast<std::uint32_t>(part * static_cast<double>(ch.grant));
    if (party.share >= least) continue;
    r.table.lower(ch, party.share);
    r.table.push_grant(party.id);
  }
}

// Raises one channel's grant towards its share, and commits the increase from `room`.
void GrantPlanner::lift(const Round& r, const Party& party, std::uint64_t& room,
                        std::uint32_t delay_us) {
  Channel& ch = r.table[party.id];
  const std::uint64_t target = std::min<std::uint64_t>(party.share, ch.com + room);
  // A newcomer's first grant is worth waiting an RTT for; then it is at least half its share.
  if (target <= ch.grant || (ch.grant == 0 && target * 2 < party.share)) {
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
  ch.next_seq();
  r.table.push_grant(party.id, delay_us);
}

// I1: every increase fits into the capacity beside everything committed. Where room is short, and
// when GRANTs leave one after another, small demands go first.
void GrantPlanner::raise(const Round& r) {
  std::uint64_t room = r.capacity > r.table.committed() ? r.capacity - r.table.committed() : 0;
  // Newcomers of one allocation would all send at the same instant, again and again at equal
  // rates: each begins one packet time after the one before.
  const std::int64_t packet_ns = std::int64_t{r.params.packet_bytes} * 8000 /
                                 std::max<std::int64_t>(1, static_cast<std::int64_t>(r.capacity));
  std::int64_t begin_ns = 0;
  for (const Party& party : parties_) {
    if (r.table[party.id].grant != 0 || party.share == 0) continue;
    const std::int64_t delay_ns = std::min(begin_ns, kBeginRtts * r.params.rtt_ns);
    lift(r, party, room, static_cast<std::uint32_t>(delay_ns / 1000));
    begin_ns += packet_ns;
  }
  for (const Party& party : parties_) {
    const Channel& ch = r.table[party.id];
    const std::uint64_t target = std::min<std::uint64_t>(party.share, ch.com + room);
    if (ch.grant == 0 || !worth_raising(r.params, target, ch.grant)) continue;
    const std::int64_t ready = ch.sent_at + kRaiseRtts * r.params.rtt_ns;
    const bool much = target >= 2 * std::uint64_t{ch.grant} ||
                      target - ch.grant >= r.params.link_mbps / kLargeStep;
    if (r.now >= ready || much) {
      lift(r, party, room, 0);
    } else {
      retry(ready);
    }
  }
}

std::int64_t GrantPlanner::plan(const Round& r) {
  retry_at_ = kNeverNanos.count;
  collect(r);
  water_fill(parties_, r.capacity);
  lower(r);
  raise(r);
  return retry_at_;
}

}  // namespace paceline::cc::cadence
