// The side of shard 0 (shard_link.h): hears what the followers' contexts want and what their queue
// pairs received, asks the one governor of the instance, and sends its answers to where they
// belong.
//
// Called on the engine's thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cc/port_sender.h"
#include "dataplane/transport/shard_link.h"

namespace paceline::transport {

// To the rest of the engine it is the governor of the uplink. The governor's contexts are those of
// all shards: index * shards + shard.
class ShardLeader final : public cc::PortSender {
 public:
  // `governor` may be empty: nothing then ever asks for the uplink.
  ShardLeader(ShardLink& link, std::unique_ptr<cc::PortSender> governor)
      : link_(link), governor_(std::move(governor)), followers_(link.shards()) {}

  // --- cc::PortSender, for the leader's own contexts ---
  void update(Nanos now, std::uint32_t context, const cc::UplinkWant& want) override {
    if (governor_ != nullptr) governor_->update(now, context * link_.shards(), want);
  }
  void forget(Nanos now, std::uint32_t context) override {
    if (governor_ != nullptr) governor_->forget(now, context * link_.shards());
  }
  // Answers for followers' contexts go out on the way.
  std::size_t poll(Nanos now, std::span<cc::ShareOutput> out) override;
  // At once when followers have sent something, or not taken what they were sent.
  Nanos next_wake() const override {
    if (inbox() || waiting()) return Nanos{0};
    return governor_ == nullptr ? kNeverNanos : governor_->next_wake();
  }
  void set_params(const cc::ParamBlock& params) override {
    if (governor_ != nullptr) governor_->set_params(params);
  }
  std::string check_invariants(Nanos now) const override {
    return governor_ == nullptr ? std::string() : governor_->check_invariants(now);
  }

  // Takes what followers sent: wants go to the governor, the rest to on_message(shard, const
  // ShardMessage&).
  template <class F>
  void drain(Nanos now, F&& on_message) {
    for (std::uint32_t shard = 1; shard < link_.shards(); ++shard) {
      ShardMessage message;
      while (link_.to_leader(shard).pop(message)) {
        if (const auto* want = std::get_if<shard_message::Want>(&message)) {
          take(now, shard, *want);
        } else if (const auto* gone = std::get_if<shard_message::Forget>(&message)) {
          forget_of(now, shard, gone->context);
        } else {
          on_message(shard, message);
        }
      }
    }
  }
  void tell(std::uint32_t shard, const ShardMessage& message) {
    followers_[shard].outbox.push(message);
  }
  void flush() {
    for (std::uint32_t shard = 1; shard < link_.shards(); ++shard) {
      followers_[shard].outbox.flush(link_.to_follower(shard));
    }
  }

  bool inbox() const {
    for (std::uint32_t shard = 1; shard < link_.shards(); ++shard) {
      if (!link_.to_leader(shard).empty()) return true;
    }
    return false;
  }
  bool waiting() const {
    for (const Follower& follower : followers_) {
      if (!follower.outbox.empty()) return true;
    }
    return false;
  }

  // The leader's own index of a follower's peer.
  std::uint32_t peer_of(std::uint32_t shard, std::uint32_t index) const {
    const std::vector<std::uint32_t>& peers = followers_[shard].peers;
    return index < peers.size() ? peers[index] : kNone;
  }
  void map_peer(std::uint32_t shard, std::uint32_t index, std::uint32_t own);
  // Calls f(shard, index) for every follower that knows the leader's peer `own`, by its own index.
  template <class F>
  void for_each_follower_of(std::uint32_t own, F&& f) const {
    for (std::uint32_t shard = 1; shard < link_.shards(); ++shard) {
      const std::vector<std::uint32_t>& names = followers_[shard].names;
      if (own < names.size() && names[own] != kNone) f(shard, names[own]);
    }
  }

  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

 private:
  struct Slot {  // a follower's context
    std::uint16_t generation = 0;
    std::uint16_t ask = 0;       // the question put to the governor last
    std::uint16_t answered = 0;  // the last that it has answered
  };
  struct Follower {
    ShardOutbox outbox;
    std::vector<Slot> slots;
    std::vector<std::uint32_t> peers;  // its index -> the leader's
    std::vector<std::uint32_t> names;  // the leader's -> its index
  };

  void take(Nanos now, std::uint32_t shard, const shard_message::Want& message);
  void forget_of(Nanos now, std::uint32_t shard, std::uint32_t context);
  std::size_t room() const;

  ShardLink& link_;
  std::unique_ptr<cc::PortSender> governor_;
  std::vector<Follower> followers_;  // by shard; that of the leader stays empty
};

}  // namespace paceline::transport
