#include "dataplane/port/shard_port.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <string>

#include "dataplane/port/steering.h"

namespace paceline {

ShardExchange::ShardExchange(std::uint32_t shard_bits, std::size_t ring_packets)
    : shard_bits_(shard_bits) {
  if (shard_bits > kMaxShardBits) {
    throw std::invalid_argument("shard exchange: more than " + std::to_string(kMaxShards) +
                                " shards");
  }
  if (ring_packets < kMostPerCall) {
    throw std::invalid_argument("shard exchange: fewer than " + std::to_string(kMostPerCall) +
                                " slots");
  }
  lanes_.resize(std::size_t{shards()} * shards());
  for (std::uint32_t from = 0; from < shards(); ++from) {
    for (std::uint32_t to = 0; to < shards(); ++to) {
      if (from == to) continue;
      lanes_[from * shards() + to] = std::make_unique<detail::RingLane>(ring_packets);
    }
  }
}

void ShardExchange::drain() {
  for (std::uint32_t from = 0; from < shards(); ++from) {
    for (std::uint32_t to = 0; to < shards(); ++to) {
      if (from == to || pools_[from] == nullptr) continue;
      Packet* packet = nullptr;
      while (lane(from, to).forward.pop(packet)) pools_[from]->free(packet);
      while (lane(from, to).home.pop(packet)) pools_[from]->free(packet);
    }
  }
}

ShardReceiver::ShardReceiver(ShardExchange& exchange, std::uint32_t shard, Port& device)
    : exchange_(exchange), shard_(shard), device_(device) {
  assert(shard < exchange.shards());
  exchange_.pools_[shard] = &device.packets();
}

bool ShardReceiver::handed_to_me() const {
  for (std::uint32_t from = 0; from < exchange_.shards(); ++from) {
    if (from != shard_ && !exchange_.lane(from, shard_).forward.empty()) return true;
  }
  return false;
}

// What other shards have copied and given back.
void ShardReceiver::take_home() {
  Burst back;
  for (std::uint32_t to = 0; to < exchange_.shards(); ++to) {
    if (to == shard_) continue;
    std::size_t n;
    do {
      n = exchange_.lane(shard_, to).home.pop(back);
      for (std::size_t i = 0; i < n; ++i) pool().free(back[i]);
    } while (n == back.size());
  }
}

// The list of loans is this thread's: what another one is to read has its bytes before.
void ShardReceiver::hand_over(std::uint32_t to, std::span<Packet* const> handed) {
  if (exchange_.pools_[to] != &pool()) {
    for (Packet* const packet : handed) {
      if (packet->payload_kind == PayloadKind::lent) [[unlikely]]
        pool().own_loan(*packet);
    }
  }
  const std::size_t pushed = exchange_.lane(shard_, to).forward.push(handed);
  counters_.handed_over += pushed;
  counters_.handed_over_full += handed.size() - pushed;
  for (Packet* packet : handed.subspan(pushed)) pool().free(packet);
}

std::size_t ShardReceiver::take_over(std::uint32_t from, std::span<Packet*> burst) {
  Burst arrived;
  detail::RingLane& lane = exchange_.lane(from, shard_);
  const std::size_t n =
      lane.forward.pop(std::span(arrived).first(std::min(arrived.size(), burst.size())));
  if (n == 0) return 0;
  counters_.taken_over += n;
  if (exchange_.pools_[from] == &pool()) {
    std::copy_n(arrived.begin(), n, burst.begin());
    return n;
  }
  std::size_t filled = 0;
  for (std::size_t i = 0; i < n; ++i) {
    Packet* own = pool().copy_of(*arrived[i]);
    if (own == nullptr) {
      ++counters_.taken_no_packet;
      continue;
    }
    burst[filled++] = own;
  }
  // Between two times that their owner takes packets home, at most a full ring that was waiting and
  // kMostPerCall more come back: the way home holds two full rings.
  const std::size_t returned = lane.home.push({arrived.data(), n});
  assert(returned == n);
  static_cast<void>(returned);
  return filled;
}

// What was handed over came earlier than what waits in the device.
std::size_t ShardReceiver::rx(std::span<Packet*> burst) {
  const std::uint32_t shards = exchange_.shards();
  take_home();
  std::size_t filled = 0;
  for (std::uint32_t from = 0; from < shards && filled < burst.size(); ++from) {
    if (from != shard_) filled += take_over(from, burst.subspan(filled));
  }
  std::array<Burst, kMaxShards> others;
  for (std::size_t taken = 0; filled < burst.size() && taken < ShardExchange::kMostPerCall;) {
    Burst arrived;
    const std::size_t wanted =
        std::min({arrived.size(), burst.size() - filled, ShardExchange::kMostPerCall - taken});
    const std::size_t n = device_.rx({arrived.data(), wanted});
    std::array<std::size_t, kMaxShards> count{};
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t home = home_shard(*arrived[i], exchange_.shard_bits());
      if (home == shard_) {
        burst[filled++] = arrived[i];
      } else {
        others[home][count[home]++] = arrived[i];
      }
    }
    for (std::uint32_t to = 0; to < shards; ++to) {
      if (count[to] != 0) hand_over(to, {others[to].data(), count[to]});
    }
    if (n < wanted) break;
    taken += n;
  }
  return filled;
}

}  // namespace paceline
