#include "dataplane/driver/host_shards.h"

#include <algorithm>
#include <utility>

namespace paceline {

namespace {

// The shards of a group take from their rings within the instant: these are short.
constexpr std::size_t kRingPackets = ShardExchange::kMostPerCall;
constexpr std::size_t kRingMessages = 64;
// A turn of a shard of which one context waits.
constexpr std::uint64_t kStride = 1 << 20;

}  // namespace

HostShards::HostShards(const transport::EngineConfig& config, Port& device, std::uint32_t first)
    : exchange_(config.shard_bits, kRingPackets),
      link_(config.shard_bits, kRingMessages),
      next_(first) {
  for (std::uint32_t s = 0; s < shards(); ++s) ports_.emplace_back(exchange_, s, device);
  for (std::uint32_t s = 1; s < shards(); ++s) {
    engines_[s] = &followers_.emplace_back(config_of(s, config), ports_[s]);
  }
}

transport::EngineConfig HostShards::config_of(std::uint32_t shard, transport::EngineConfig config) {
  config.shard = shard;
  config.shards = &link_;
  return config;
}

transport::Engine& HostShards::next_engine() {
  const std::uint32_t shard = next_++ % shards();
  stirred_ |= 1U << shard;
  return *engines_[shard];
}

bool HostShards::due(std::uint32_t shard, Picos now) const {
  const transport::Engine& engine = *engines_[shard];
  return (stirred_ >> shard & 1U) != 0 || engine.next_deadline() <= now || engine.inbox() ||
         ports_[shard].rx_ready_at() <= now;
}

void HostShards::close(bool closed) {
  for (GroupPort& port : ports_) port.close(closed);
}

// Everything but sending.
void HostShards::arrive(Picos now) {
  close(true);
  bool any;
  do {
    any = false;
    for (std::uint32_t s = 0; s < shards(); ++s) {
      if (!due(s, now)) continue;
      stirred_ &= ~(1U << s);
      engines_[s]->poll(now);
      any = true;
    }
  } while (any);
  close(false);
}

// The turn of one shard. False: nobody can send any more.
bool HostShards::send(Picos now) {
  std::uint32_t best = kMaxShards;
  transport::SendClaim best_claim;
  std::uint32_t claiming = 0;
  for (std::uint32_t i = 0; i < shards(); ++i) {
    const std::uint32_t s = (control_turn_ + i) % shards();
    if ((tried_ >> s & 1U) != 0) continue;
    const transport::SendClaim claim = engines_[s]->send_claim();
    if (claim.traffic_class == transport::SendClaim::kNoClass) continue;
    claiming |= 1U << s;
    // Who comes anew waits for all others once, as behind the last in a ring.
    if ((claimed_ >> s & 1U) == 0) {
      had_[s] = std::max(had_[s], floor_ + kStride / claim.contexts);
    }
    if (ports_[s].tx_ready_at(claim.traffic_class) > now) continue;
    const std::pair rank{claim.traffic_class, claim.urgent};
    const std::pair best_rank{best_claim.traffic_class, best_claim.urgent};
    if (best == kMaxShards || rank > best_rank ||
        (rank == best_rank && had_[s] < had_[best] && rank.first != kControlClass)) {
      best = s;
      best_claim = claim;
    }
  }
  claimed_ = claiming;
  if (best == kMaxShards) return false;
  engines_[best]->poll(now);
  if (best_claim.traffic_class == kControlClass) {
    control_turn_ = (best + 1) % shards();
  } else {
    floor_ = had_[best];
    had_[best] += kStride / best_claim.contexts;
  }
  if (ports_[best].tx_ready_at(best_claim.traffic_class) <= now) tried_ |= 1U << best;
  return true;
}

void HostShards::poll(Picos now) {
  tried_ = 0;
  do {
    arrive(now);
  } while (send(now));
}

Picos HostShards::next_deadline() const {
  Picos next = kNever;
  for (std::uint32_t s = 0; s < shards(); ++s) next = earlier(next, engines_[s]->next_deadline());
  return next;
}

telemetry::EngineCounters HostShards::counters() const {
  telemetry::EngineCounters sum = engines_[0]->counters();
  for (std::uint32_t s = 1; s < shards(); ++s) sum += engines_[s]->counters();
  return sum;
}

}  // namespace paceline
