#include "dataplane/transport/shard_leader.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace paceline::transport {

namespace {
// Answers of the governor taken at a time.
constexpr std::size_t kAnswers = 16;
}  // namespace

void ShardLeader::take(Nanos now, std::uint32_t shard, const shard_message::Want& message) {
  if (governor_ == nullptr) return;
  std::vector<Slot>& slots = followers_[shard].slots;
  if (message.context >= slots.size()) slots.resize(message.context + 1);
  Slot& slot = slots[message.context];
  slot.generation = message.generation;
  cc::UplinkWant want = message.want;
  // What is asked again was answered already: the two crossed.
  if (want.asks_start && message.ask == slot.answered) want.asks_start = false;
  slot.ask = message.ask;
  governor_->update(now, message.context * link_.shards() + shard, want);
}

void ShardLeader::forget_of(Nanos now, std::uint32_t shard, std::uint32_t context) {
  if (governor_ != nullptr) governor_->forget(now, context * link_.shards() + shard);
}

// Answers that every follower could take.
std::size_t ShardLeader::room() const {
  std::size_t least = kAnswers;
  for (std::uint32_t shard = 1; shard < link_.shards(); ++shard) {
    const ShardLink::Ring& ring = link_.to_follower(shard);
    least = std::min(least, ring.capacity() - ring.size());
  }
  return least;
}

std::size_t ShardLeader::poll(Nanos now, std::span<cc::ShareOutput> out) {
  if (governor_ == nullptr) return 0;
  const std::uint32_t shards = link_.shards();
  std::size_t filled = 0;
  // Until the governor has no more, `out` is full or a follower's ring is: then the governor keeps
  // the rest, and asks to be polled again.
  while (filled < out.size()) {
    std::array<cc::ShareOutput, kAnswers> answers;
    const std::size_t wanted = std::min(room(), out.size() - filled);
    if (wanted == 0) break;
    const std::size_t n = governor_->poll(now, {answers.data(), wanted});
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t shard = answers[i].context % shards;
      const std::uint32_t context = answers[i].context / shards;
      if (shard == 0) {
        out[filled++] = {context, answers[i].share};
        continue;
      }
      Slot& slot = followers_[shard].slots[context];
      if (answers[i].share.answers_start) slot.answered = slot.ask;
      const bool pushed = link_.to_follower(shard).push(
          shard_message::Share{context, slot.generation, answers[i].share});
      assert(pushed);  // this side alone fills the ring, and there was room
      static_cast<void>(pushed);
    }
    if (n < wanted) break;
  }
  return filled;
}

void ShardLeader::map_peer(std::uint32_t shard, std::uint32_t index, std::uint32_t own) {
  Follower& follower = followers_[shard];
  if (index >= follower.peers.size()) follower.peers.resize(index + 1, kNone);
  const std::uint32_t before = follower.peers[index];
  if (before != kNone) follower.names[before] = kNone;
  follower.peers[index] = own;
  if (own == kNone) return;
  if (own >= follower.names.size()) follower.names.resize(own + 1, kNone);
  follower.names[own] = index;
}

}  // namespace paceline::transport
