#include "cc/cadence/sender.h"

#include <algorithm>
#include <bit>

#include "cc/param_block.h"

namespace paceline::cc {
namespace {

// Announcements that may leave at once before their spacing holds: one per peer of a collective.
constexpr std::int64_t kAnnounceBurst = 64;
// Others that a context's hypothetical level is checked against; beyond it the level errs high.
constexpr std::size_t kLevelSteps = 64;
// The part of the uplink that a class has however much higher ones want.
constexpr std::uint64_t kLeastOfClass = 64;

bool differs(std::uint32_t a, std::uint32_t b, std::uint32_t part) {
  const std::uint32_t distance = a > b ? a - b : b - a;
  return std::uint64_t{distance} * part > std::max(a, b);
}

}  // namespace

CadenceSender::CadenceSender(const CadenceParams& params) : params_(params) {
  room_bytes_ = params.bdp_bytes;
  credit_ns_ = kAnnounceBurst * params.control_ns;
}

void CadenceSender::set_params(const ParamBlock& params) {
  params_ = params.as<CadenceParams>();
  room_bytes_ = std::min<std::int64_t>(room_bytes_, params_.bdp_bytes);
  dirty_ = true;
}

void CadenceSender::update(Nanos now, std::uint32_t context, const UplinkWant& want) {
  if (context >= entries_.size()) entries_.resize(context + 1);
  Entry& entry = entries_[context];
  if (want.asks_start && !entry.asking) {
    entry.asking = true;
    asking_.push_back(context);
  } else if (entry.want == want) {
    return;
  }
  if (want.active != entry.want.active || (want.active && want != entry.want)) {
    if (!dirty_) share_at_ = std::max(share_at_, now.count);
    dirty_ = true;
  }
  entry.want = want;
  if (want.active && entry.position == 0) {
    active_.push_back(context);
    entry.position = static_cast<std::uint32_t>(active_.size());
  } else if (!want.active && entry.position != 0) {
    const std::uint32_t last = active_.back();
    active_[entry.position - 1] = last;
    entries_[last].position = entry.position;
    active_.pop_back();
    entry.position = 0;
    entry.share_mbps = entry.cap_mbps = params_.link_mbps;
  }
}

void CadenceSender::forget(Nanos now, std::uint32_t context) {
  if (context >= entries_.size()) return;
  update(now, context, UplinkWant{});
  if (entries_[context].asking) std::erase(asking_, context);
  // A change computed but not delivered must not reach the index's next owner.
  for (std::size_t i = ready_head_; i < ready_.size();) {
    if (ready_[i].context == context) {
      ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  entries_[context] = Entry{};
}

std::uint32_t CadenceSender::limit_of(const Entry& entry) const {
  return entry.want.awaits_grant ? params_.link_mbps
                                 : std::min(entry.want.limit_mbps, params_.link_mbps);
}

std::uint32_t CadenceSender::spacing_ns() const {
  const std::uint64_t ns = static_cast<std::uint64_t>(params_.control_ns) * active_.size();
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(ns, 100'000'000));
}

bool CadenceSender::take_token(std::int64_t now) {
  credit_ns_ = std::min(credit_ns_ + (now - credit_at_), kAnnounceBurst * params_.control_ns);
  credit_at_ = now;
  if (credit_ns_ < params_.control_ns) return false;
  credit_ns_ -= params_.control_ns;
  return true;
}

void CadenceSender::share_uplink(std::int64_t now) {
  dirty_ = false;
  share_at_ = now + params_.alloc_ns;
  const bool weighted = std::any_of(active_.begin(), active_.end(),
                                    [this](std::uint32_t c) { return entries_[c].want.bulk; });
  parties_.clear();
  bool one_class = true;
  for (const std::uint32_t c : active_) {
    const UplinkWant& want = entries_[c].want;
    one_class = one_class && want.traffic_class == entries_[active_[0]].want.traffic_class;
    const std::uint32_t weight = weighted ? want.weight : 1;
    parties_.push_back({.id = c, .limit = limit_of(entries_[c]), .weight = weight});
  }
  // ACKs of what comes in and control use the uplink, too: 2 to 3 % of it, if as much comes in.
  std::uint64_t capacity = uplink_mbps(params_);
  if (one_class) [[likely]] {
    share_among(now, parties_, capacity);
    return;
  }
  const auto class_of = [this](const cadence::Party& party) {
    return entries_[party.id].want.traffic_class;
  };
  std::sort(parties_.begin(), parties_.end(),
            [&](const auto& a, const auto& b) { return class_of(a) > class_of(b); });
  const std::uint64_t least = capacity / kLeastOfClass;
  for (auto begin = parties_.begin(); begin != parties_.end();) {
    const auto end = std::find_if(begin, parties_.end(), [&](const cadence::Party& other) {
      return class_of(other) != class_of(*begin);
    });
    capacity -= std::min(capacity, share_among(now, {begin, end}, std::max(capacity, least)));
    begin = end;
  }
}

std::uint64_t CadenceSender::share_among(std::int64_t now, std::span<cadence::Party> parties,
                                         std::uint64_t capacity) {
  const cadence::WaterLevel level = cadence::water_fill(parties, capacity);
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < parties.size(); ++i) {
    const cadence::Party& party = parties[i];
    used += std::min(party.share, party.limit);
    if (i >= level.bound) {
      deliver_changes(now, party.id, party.share, party.share);
      continue;
    }
    // If its grant were unlimited, it would join those at the level, and so would every other
    // context whose limit lies above the resulting level. The level never falls below its own
    // limit, so the walk from the largest ends before it.
    std::uint64_t room = level.left + party.limit;
    std::uint64_t sharers = level.weights + party.weight;
    const std::size_t last = level.bound - std::min(level.bound, kLevelSteps);
    for (std::size_t j = level.bound; j > last; --j) {
      const cadence::Party& other = parties[j - 1];
      if (other.limit * sharers <= room * other.weight) break;
      room += other.limit;
      sharers += other.weight;
    }
    deliver_changes(now, party.id, params_.link_mbps,
                    static_cast<std::uint32_t>(room * party.weight / sharers));
  }
  return used;
}

void CadenceSender::deliver_changes(std::int64_t now, std::uint32_t context, std::uint32_t share,
                                    std::uint32_t cap) {
  Entry& entry = entries_[context];
  entry.cap_mbps = cap;
  if (entry.asking) {  // the answer carries everything
    entry.share_mbps = share;
    return;
  }
  const std::uint32_t limit = entry.want.awaits_grant ? 0 : limit_of(entry);
  // Worth telling only while the old or the new cap limits the receiver's grant.
  const std::uint32_t near = limit + limit / 4;
  bool announce =
      limit > 0 && (cap < near || entry.told_mbps < near) && differs(cap, entry.told_mbps, 8);
  if (announce && (now < entry.told_at + params_.rtt_ns || !take_token(now))) {
    announce = false;
    dirty_ = true;
    share_at_ = now + params_.rtt_ns;
  }
  const bool rate_changed = differs(share, entry.share_mbps, 64);
  const bool spacing_changed = active_.size() > 2 * std::size_t{entry.told_contexts};
  if (!announce && !rate_changed && !spacing_changed) return;
  entry.share_mbps = share;
  entry.told_contexts = static_cast<std::uint32_t>(active_.size());
  if (announce) entry.told_at = now;
  // A context holds exactly the cap that it announced, because each of its REQUESTs repeats that
  // cap. With a cap that was not announced, the sender would not know when it ends.
  if (announce || entry.told_mbps == 0) entry.told_mbps = cap;
  ready_.push_back({context, UplinkShare{.rate_mbps = share,
                                         .cap_mbps = entry.told_mbps,
                                         .request_spacing_ns = spacing_ns(),
                                         .announce = announce}});
}

void CadenceSender::answer(std::int64_t now, std::uint32_t context, std::uint32_t start_bytes) {
  Entry& entry = entries_[context];
  entry.asking = false;
  if (entry.cap_mbps == 0 || !entry.want.active) entry.cap_mbps = params_.link_mbps;
  if (entry.share_mbps == 0) entry.share_mbps = params_.link_mbps;
  entry.told_mbps = entry.cap_mbps;  // the answer makes a REQUEST
  entry.told_at = now;
  entry.told_contexts = static_cast<std::uint32_t>(active_.size());
  ready_.push_back({context, UplinkShare{.rate_mbps = entry.share_mbps,
                                         .cap_mbps = entry.cap_mbps,
                                         .start_bytes = start_bytes,
                                         .request_spacing_ns = spacing_ns(),
                                         .answers_start = true}});
}

void CadenceSender::answer_starts(std::int64_t now) {
  const std::int64_t bdp = params_.bdp_bytes;
  const std::int64_t span = std::min(now - room_at_, 2 * params_.rtt_ns);
  room_bytes_ =
      std::min(bdp, room_bytes_ + static_cast<std::int64_t>(bytes_at(params_.link_mbps, span)));
  room_at_ = now;

  // Whole packets in turn, one each per round, until the room is used or all are served.
  given_.assign(asking_.size(), 0);
  const std::size_t count = asking_.size();
  const std::size_t first = rotation_ % count;
  for (bool progress = true; progress && room_bytes_ > 0;) {
    progress = false;
    for (std::size_t k = 0; k < count && room_bytes_ > 0; ++k) {
      const std::size_t i = (first + k) % count;
      const std::uint32_t want = entries_[asking_[i]].want.start_bytes;
      const std::uint32_t more = std::min(want - given_[i], params_.packet_bytes);
      if (more == 0 || more > room_bytes_) continue;
      given_[i] += more;
      room_bytes_ -= more;
      progress = true;
      rotation_ = i + 1;
    }
  }
  for (std::size_t i = 0; i < count; ++i) answer(now, asking_[i], given_[i]);
  asking_.clear();
}

std::size_t CadenceSender::poll(Nanos now, std::span<ShareOutput> out) {
  if (dirty_ && now.count >= share_at_) share_uplink(now.count);
  if (!asking_.empty()) answer_starts(now.count);
  std::size_t n = 0;
  while (n < out.size() && ready_head_ < ready_.size()) out[n++] = ready_[ready_head_++];
  if (ready_head_ == ready_.size()) {
    ready_.clear();
    ready_head_ = 0;
  }
  return n;
}

Nanos CadenceSender::next_wake() const {
  if (!ready_.empty() || !asking_.empty()) return Nanos{0};
  return dirty_ ? Nanos{share_at_} : kNeverNanos;
}

std::string CadenceSender::check_invariants(Nanos) const {
  const auto fault = [](std::string_view what, std::uint64_t a, std::uint64_t b) {
    return "cadence arbiter: " + std::string(what) + ": " + std::to_string(a) + " against " +
           std::to_string(b);
  };
  if (room_bytes_ > std::int64_t{params_.bdp_bytes}) {
    return fault("start room beyond one BDP", static_cast<std::uint64_t>(room_bytes_),
                 params_.bdp_bytes);
  }
  std::size_t found = 0;
  for (std::size_t c = 0; c < entries_.size(); ++c) {
    const Entry& entry = entries_[c];
    if ((entry.position != 0) != entry.want.active) return fault("active list lost", c, 0);
    if (entry.position != 0) {
      ++found;
      if (active_[entry.position - 1] != c) return fault("active list mixed up", c, entry.position);
    }
  }
  if (found != active_.size()) return fault("active list length", found, active_.size());
  if (dirty_) return {};
  // Shares delivered add up to the link, except for the hysteresis of 1/64 each.
  std::uint64_t sum = 0;
  std::uint32_t classes = 0;
  for (const std::uint32_t c : active_) {
    sum += std::min(entries_[c].share_mbps, limit_of(entries_[c]));
    classes |= 1U << entries_[c].want.traffic_class;
  }
  const auto others = static_cast<std::uint64_t>(std::max(1, std::popcount(classes)) - 1);
  const std::uint64_t bound = std::uint64_t{params_.link_mbps} * 66 / 64 +
                              others * params_.link_mbps / kLeastOfClass + active_.size();
  if (sum > bound) return fault("shares beyond the link (Mb/s)", sum, bound);
  return {};
}

}  // namespace paceline::cc
