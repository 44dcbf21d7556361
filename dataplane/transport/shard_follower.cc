#include "dataplane/transport/shard_follower.h"

#include <algorithm>
#include <bit>

#include "dataplane/transport/peer_table.h"

namespace paceline::transport {

void ShardFollower::change(std::uint32_t context) {
  if (entries_[context].changed) return;
  entries_[context].changed = true;
  changed_.push_back(context);
}

void ShardFollower::update(Nanos, std::uint32_t context, const cc::UplinkWant& want) {
  if (context >= entries_.size()) entries_.resize(context + 1);
  Entry& entry = entries_[context];
  const bool asks = want.asks_start && !entry.asking;
  if (!asks && entry.want == want) return;
  if (asks) {
    entry.asking = true;
    ++entry.ask;
  }
  entry.want = want;
  change(context);
}

void ShardFollower::forget(Nanos, std::uint32_t context) {
  if (context >= entries_.size()) return;
  Entry& entry = entries_[context];
  entry.want = {};
  entry.asking = false;
  entry.forgotten = true;
  ++entry.generation;
  change(context);
  std::erase_if(answers_, [context](const cc::ShareOutput& a) { return a.context == context; });
}

void ShardFollower::take(const shard_message::Share& share) {
  if (share.context >= entries_.size()) return;
  Entry& entry = entries_[share.context];
  if (share.generation != entry.generation) return;
  if (share.share.answers_start) entry.asking = false;
  answers_.push_back({share.context, share.share});
}

std::size_t ShardFollower::poll(Nanos, std::span<cc::ShareOutput> out) {
  const std::size_t n = std::min(out.size(), answers_.size());
  std::copy_n(answers_.begin(), n, out.begin());
  answers_.erase(answers_.begin(), answers_.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

void ShardFollower::peer_added(std::uint32_t index, const Peer& peer) {
  if (index >= counts_.size()) counts_.resize(index + 1);
  touched_.reserve(counts_.size());
  outbox_.push(shard_message::PeerAdded{index, peer.ip, peer.mac, peer.traffic_class});
}

void ShardFollower::received(std::uint32_t peer, std::uint32_t far_number, std::uint32_t wire_bytes,
                             bool marked, std::uint16_t entropy) {
  Counts& counts = counts_[peer];
  const std::uint32_t far_bits = shard_of_number(far_number, kMaxShardBits);
  if (counts.touched == 0) touched_.push_back(peer);
  counts.touched |= 1U << far_bits;
  shard_message::Received& of = counts.of[far_bits];
  of.bytes += wire_bytes;
  ++of.packets;
  if (!marked) return;
  ++of.ce_packets;
  of.last_marked_entropy = entropy;
}

bool ShardFollower::flush_received() {
  while (!touched_.empty()) {
    const std::uint32_t peer = touched_.back();
    Counts& counts = counts_[peer];
    while (counts.touched != 0) {
      const auto bits = static_cast<std::uint32_t>(std::countr_zero(counts.touched));
      shard_message::Received& of = counts.of[bits];
      of.peer = peer;
      of.far_bits = static_cast<std::uint8_t>(bits);
      if (!up_.push(of)) return false;
      of = {};
      counts.touched &= counts.touched - 1;
    }
    touched_.pop_back();
  }
  return true;
}

bool ShardFollower::flush_wants() {
  // In the order in which they changed: who asks first is answered first.
  std::size_t done = 0;
  for (; done < changed_.size(); ++done) {
    Entry& entry = entries_[changed_[done]];
    if (entry.forgotten) {
      if (!up_.push(shard_message::Forget{changed_[done]})) break;
      entry.forgotten = false;
    }
    if (!up_.push(shard_message::Want{changed_[done], entry.generation, entry.ask, entry.want})) {
      break;
    }
    entry.changed = false;
  }
  changed_.erase(changed_.begin(), changed_.begin() + static_cast<std::ptrdiff_t>(done));
  return changed_.empty();
}

void ShardFollower::flush(std::uint64_t& foreign_bytes) {
  if (!outbox_.flush(up_) || !flush_received() || !flush_wants()) return;
  if (foreign_bytes != 0 && up_.push(shard_message::Foreign{foreign_bytes})) foreign_bytes = 0;
}

}  // namespace paceline::transport
