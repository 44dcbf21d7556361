#include "cc/homa/receiver.h"

#include <algorithm>

#include "cc/param_block.h"

namespace paceline::cc {

HomaReceiver::HomaReceiver(const HomaParams& params)
    : GrantReceiver(params.port, params.reclaim_ns), params_(params) {
  ranked_.reserve(params.overcommit + 1);
}

void HomaReceiver::set_params(const ParamBlock& params) {
  params_ = params.as<HomaParams>();
  take_port(params_.port, params_.reclaim_ns);
  ranked_.reserve(params_.overcommit + 1);
  if (params_.priorities.levels == 0) drop_priorities();
}

// Finds the K senders with the least left; among equals, those that asked first.
void HomaReceiver::rank() {
  ranked_.clear();
  for (const std::uint32_t peer : listed()) {
    const Channel& c = channel(peer);
    if (wanted(c) == 0) continue;
    const std::uint64_t here = arrived(peer);
    const Ranked one{c.final_total > here ? c.final_total - here : 0, peer, 0};
    const auto before = [this](const Ranked& a, const Ranked& b) {
      if (a.left != b.left) return a.left < b.left;
      const std::int64_t since_a = channel(a.peer).born_at;
      const std::int64_t since_b = channel(b.peer).born_at;
      return since_a != since_b ? since_a < since_b : a.peer < b.peer;
    };
    const auto place = std::upper_bound(ranked_.begin(), ranked_.end(), one, before);
    if (ranked_.size() < params_.overcommit) {
      ranked_.insert(place, one);
    } else if (place != ranked_.end()) {
      ranked_.insert(place, one);
      ranked_.pop_back();
    }
  }
  active_ = static_cast<std::uint32_t>(ranked_.size());
}

// False when there is no room for the message.
bool HomaReceiver::pay(std::int64_t now, const Ranked& to, std::uint64_t most) {
  const std::uint32_t peer = to.peer;
  const std::uint64_t want = wanted(channel(peer));
  std::uint64_t bytes = std::min(want, most);
  if (bytes == 0 || (bytes < want && bytes < params_.port.packet_bytes)) return true;
  bytes = std::min(with_headers(peer, bytes), want);
  if (!room()) return false;
  if (params_.priorities.levels != 0) put_level(peer, to.level);
  grant(now, peer, bytes);
  aside_bytes_ += params_.oldest_share * static_cast<double>(bytes);
  return true;
}

void HomaReceiver::pay_oldest(std::int64_t now) {
  if (aside_bytes_ < params_.oldest_bytes || !room()) return;
  std::uint32_t oldest = 0;
  bool found = false;
  for (const std::uint32_t peer : listed()) {
    const Channel& c = channel(peer);
    if (wanted(c) == 0) continue;
    const std::int64_t since = channel(oldest).born_at;
    if (!found || c.born_at < since || (c.born_at == since && peer < oldest)) oldest = peer;
    found = true;
  }
  if (!found) return;
  aside_bytes_ -= params_.oldest_bytes;
  if (params_.priorities.levels != 0) put_level(oldest, most_level(oldest));
  grant(now, oldest, std::min<std::uint64_t>(wanted(channel(oldest)), params_.oldest_bytes));
}

// The level of the sender's bytes in flight. A queue pair does not rise above it, so a higher level
// would have no effect (dataplane/transport/message/packet_class.h).
unsigned HomaReceiver::most_level(std::uint32_t peer) {
  const std::uint8_t said = channel(peer).priority;
  const bool bound = said != 0 && outstanding(peer) > 0;
  return bound ? said - 1U : params_.priorities.scheduled() - 1U;
}

void HomaReceiver::put_level(std::uint32_t peer, unsigned level) {
  set_priority(peer, static_cast<std::uint8_t>(level + 1));
}

// Gives levels by rank. A sender never gets a higher level than one with less left: if that one
// cannot rise, it would have to wait for all of the other's bytes.
void HomaReceiver::put_levels() {
  unsigned most = params_.priorities.scheduled() - 1U;
  for (std::size_t rank = 0; rank < ranked_.size(); ++rank) {
    most = std::min(
        {most, most_level(ranked_[rank].peer), params_.priorities.level_of(rank, active_)});
    ranked_[rank].level = most;
  }
}

void HomaReceiver::share(std::int64_t now) {
  rank();
  if (params_.priorities.levels != 0) put_levels();
  const std::uint64_t window =
      std::max<std::uint64_t>(params_.incoming_bytes / (active_ + 1), params_.port.packet_bytes);
  std::uint64_t incoming = under_way();
  for (const Ranked& one : ranked_) {
    const std::uint64_t has = under_way(one.peer);
    const std::uint64_t free =
        params_.incoming_bytes > incoming ? params_.incoming_bytes - incoming : 0;
    const std::uint64_t before = channel(one.peer).limit_total;
    if (!pay(now, one, std::min(window > has ? window - has : 0, free))) return;
    incoming += channel(one.peer).limit_total - before;
  }
  pay_oldest(now);
  if (room()) next_at_ = now + packet_ns();
}

}  // namespace paceline::cc
