// The side of a shard that is not the leader (shard_link.h): tells the leader what its contexts
// want of the uplink and what its queue pairs received, and hands its answers on.
//
// Called on the engine's thread only. Costs nothing per packet that is not received data; a
// message per context or peer that something happened to, and burst.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cc/port_sender.h"
#include "dataplane/transport/shard_link.h"

namespace paceline::transport {

struct Peer;

// To the rest of the engine it is the governor of the uplink.
class ShardFollower final : public cc::PortSender {
 public:
  ShardFollower(ShardLink& link, std::uint32_t shard)
      : up_(link.to_leader(shard)), down_(link.to_follower(shard)) {}

  // --- cc::PortSender: shares come from the leader ---
  void update(Nanos now, std::uint32_t context, const cc::UplinkWant& want) override;
  void forget(Nanos now, std::uint32_t context) override;
  std::size_t poll(Nanos now, std::span<cc::ShareOutput> out) override;
  // At once when the leader has sent something, or not taken what it was sent.
  Nanos next_wake() const override {
    return answers_.empty() && !inbox() && !waiting() ? kNeverNanos : Nanos{0};
  }

  // --- peers and received data ---
  void peer_added(std::uint32_t index, const Peer& peer);
  void peer_gone(std::uint32_t index) { outbox_.push(shard_message::PeerGone{index}); }
  // far_number: of the queue pair that sent it.
  void received(std::uint32_t peer, std::uint32_t far_number, std::uint32_t wire_bytes, bool marked,
                std::uint16_t entropy);

  // Takes what the leader sent: shares are kept for poll(), the rest goes to on_message
  // (const ShardMessage&).
  template <class F>
  void drain(F&& on_message) {
    ShardMessage message;
    while (down_.pop(message)) {
      if (const auto* share = std::get_if<shard_message::Share>(&message)) {
        take(*share);
      } else {
        on_message(message);
      }
    }
  }
  // Tells what there is to tell, as far as there is room; foreign_bytes is then 0. Called at the
  // end of every poll.
  void flush(std::uint64_t& foreign_bytes);

  bool inbox() const { return !down_.empty(); }
  // Something still waits for room.
  bool waiting() const { return !outbox_.empty() || !touched_.empty() || !changed_.empty(); }

 private:
  struct Counts {
    std::array<shard_message::Received, kMaxShards> of{};  // by far_bits
    std::uint32_t touched = 0;                             // bits: which of them
  };
  struct Entry {
    cc::UplinkWant want{};
    std::uint16_t generation = 0;
    std::uint16_t ask = 0;
    bool asking = false;     // the answer has not come yet
    bool changed = false;    // in changed_
    bool forgotten = false;  // the leader has to hear that, before any new want
  };

  void take(const shard_message::Share& share);
  void change(std::uint32_t context);
  bool flush_received();
  bool flush_wants();

  ShardLink::Ring& up_;
  ShardLink::Ring& down_;
  ShardOutbox outbox_;
  std::vector<Counts> counts_;          // by peer
  std::vector<std::uint32_t> touched_;  // peers with counts
  std::vector<Entry> entries_;          // by context
  std::vector<std::uint32_t> changed_;  // contexts
  std::vector<cc::ShareOutput> answers_;
};

}  // namespace paceline::transport
