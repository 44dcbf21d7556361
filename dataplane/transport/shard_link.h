// What the shards of one NIC instance tell each other about congestion control. The port-level
// halves of a proactive algorithm live on shard 0, the leader: its governor shares the uplink among
// the contexts of all shards, its allocator grants to senders whose data any shard receives. The
// other shards, the followers, tell what they want and what they received, once per burst, and are
// told what they got (shard_leader.h, shard_follower.h).
//
// A ring each way between the leader and every follower; nothing is said between followers. What
// finds a ring full is kept by its sender until there is room, summed up meanwhile: nothing is
// lost, and nobody waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "cc/port_sender.h"
#include "dataplane/base/control_messages.h"
#include "dataplane/base/shards.h"
#include "dataplane/base/spsc_ring.h"
#include "dataplane/wire/addresses.h"

namespace paceline::transport {

// Peers are named by the follower's own index, contexts likewise. `generation`: an index is used
// again; what was meant for its last owner must not reach the next one.
namespace shard_message {

// --- follower to leader ---
struct PeerAdded {  // a first queue pair or address handle of the follower names it
  std::uint32_t peer = 0;
  wire::IpAddress ip{};
  wire::MacAddress mac{};
  std::uint8_t traffic_class = 0;
};
struct PeerGone {
  std::uint32_t peer = 0;
};
struct Received {  // data of this peer's shard, since the last
  std::uint32_t peer = 0;
  std::uint32_t bytes = 0;  // wire bytes
  std::uint32_t packets = 0;
  std::uint32_t ce_packets = 0;
  std::uint16_t last_marked_entropy = 0;
  std::uint8_t far_bits = 0;  // low bits of the sending queue pair's number
};
struct Foreign {  // wire bytes outside any channel
  std::uint64_t bytes = 0;
};
struct Want {
  std::uint32_t context = 0;
  std::uint16_t generation = 0;
  std::uint16_t ask = 0;  // number of the question that want.asks_start stands for
  cc::UplinkWant want{};
};
struct Forget {
  std::uint32_t context = 0;
};

// --- leader to follower ---
struct Share {
  std::uint32_t context = 0;
  std::uint16_t generation = 0;
  cc::UplinkShare share{};
};
struct Echo {  // what the peer wants back for marked data
  std::uint32_t peer = 0;
  EcnEcho echo = EcnEcho::cnp;
};
struct Heard {  // the peer said HELLO
  std::uint32_t peer = 0;
  std::uint32_t features = 0;
  std::uint8_t crowd = 0;
};

}  // namespace shard_message

using ShardMessage =
    std::variant<shard_message::PeerAdded, shard_message::PeerGone, shard_message::Received,
                 shard_message::Foreign, shard_message::Want, shard_message::Forget,
                 shard_message::Share, shard_message::Echo, shard_message::Heard>;

// Belongs to the instance; outlives its engines.
class ShardLink {
 public:
  using Ring = SpscRing<ShardMessage>;

  // messages: that each ring holds, at least.
  ShardLink(std::uint32_t shard_bits, std::size_t messages) : shard_bits_(shard_bits) {
    for (std::uint32_t i = 1; i < shards(); ++i) {
      pairs_.push_back(std::make_unique<Pair>(messages));
    }
  }

  std::uint32_t shards() const { return 1U << shard_bits_; }
  Ring& to_leader(std::uint32_t follower) { return pairs_[follower - 1]->up; }
  Ring& to_follower(std::uint32_t follower) { return pairs_[follower - 1]->down; }

 private:
  struct Pair {
    explicit Pair(std::size_t messages) : up(messages), down(messages) {}
    Ring up;
    Ring down;
  };
  std::uint32_t shard_bits_;
  std::vector<std::unique_ptr<Pair>> pairs_;
};

// Messages of control operations, oldest first, that wait for room in a ring.
class ShardOutbox {
 public:
  void push(const ShardMessage& message) { waiting_.push_back(message); }
  // True when nothing waits any more.
  bool flush(ShardLink::Ring& ring) {
    while (head_ < waiting_.size() && ring.push(waiting_[head_])) ++head_;
    if (head_ < waiting_.size()) return false;
    waiting_.clear();
    head_ = 0;
    return true;
  }
  bool empty() const { return waiting_.empty(); }

 private:
  std::vector<ShardMessage> waiting_;
  std::size_t head_ = 0;
};

}  // namespace paceline::transport
