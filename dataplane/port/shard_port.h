// The port of one shard, in front of its receive queue of the device: it hands over what belongs to
// another shard (steering.h) by a ring, and takes what others hand over to it. The engine above
// sees only packets that are its own.
//
// Between threads: one bounded single-producer ring per ordered pair of shards carries pointers;
// the receiver copies into a packet of its own pool and gives the original back by a second ring,
// so that every packet goes home (as ring_port.h does). Where two shards share a pool, which is
// possible on one thread only, the pointer itself moves on. A full ring drops the packet and counts
// it, as a device's full queue would: waiting could leave two shards waiting for each other.
//
// What is sent goes to the shard's queue of the device as it comes. (In virtual time all shards
// share one port, whose turns the driver decides: driver/group_port.h.)
//
// Threads: a ShardPort belongs to one thread. The exchange must outlive all use of its ports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/shards.h"
#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"
#include "dataplane/port/ring_port.h"

namespace paceline {

struct ShardPortCounters {
  std::uint64_t handed_over = 0;       // to other shards
  std::uint64_t handed_over_full = 0;  // dropped: the ring to the other shard was full
  std::uint64_t taken_over = 0;        // from other shards
  std::uint64_t taken_no_packet = 0;   // dropped: the own pool was empty
};

// The rings between the shards of one instance.
class ShardExchange {
 public:
  // shard_bits: 0..kMaxShardBits. ring_packets: of each ring, rounded up to a power of two; at
  // least kMostPerCall. Throws std::invalid_argument.
  ShardExchange(std::uint32_t shard_bits, std::size_t ring_packets);

  // What a port takes from its device in one call, at most: with it, the way home always has room.
  static constexpr std::size_t kMostPerCall = 64;

  std::uint32_t shards() const { return 1U << shard_bits_; }
  std::uint32_t shard_bits() const { return shard_bits_; }

  // After all threads are done: packets still inside the rings go back to their pools.
  void drain();

 private:
  friend class ShardReceiver;
  detail::RingLane& lane(std::uint32_t from, std::uint32_t to) {
    return *lanes_[from * shards() + to];
  }

  std::uint32_t shard_bits_;
  std::vector<std::unique_ptr<detail::RingLane>> lanes_;  // [from][to]; none from a shard to itself
  std::array<PacketPool*, kMaxShards> pools_{};           // by shard
};

// The receiving side of one shard.
class ShardReceiver {
 public:
  // `device`: the shard's queue of the device, or the one port that all shards of one thread share.
  // Receivers of all shards have to exist before any is used.
  ShardReceiver(ShardExchange& exchange, std::uint32_t shard, Port& device);

  // As Port::rx.
  std::size_t rx(std::span<Packet*> burst);
  // As Port::rx_ready_at.
  Picos ready_at() const { return handed_to_me() ? Picos{0} : device_.rx_ready_at(); }
  // Other shards have handed over what rx would return.
  bool handed_to_me() const;
  const ShardPortCounters& counters() const { return counters_; }

 private:
  using Burst = std::array<Packet*, 32>;

  PacketPool& pool() { return device_.packets(); }
  void take_home();
  void hand_over(std::uint32_t to, std::span<Packet* const> handed);
  std::size_t take_over(std::uint32_t from, std::span<Packet*> burst);

  ShardExchange& exchange_;
  std::uint32_t shard_;
  Port& device_;
  ShardPortCounters counters_;
};

class ShardPort final : public Port {
 public:
  ShardPort(ShardExchange& exchange, std::uint32_t shard, Port& device)
      : device_(device), receiver_(exchange, shard, device) {}

  std::size_t rx(std::span<Packet*> burst) override { return receiver_.rx(burst); }
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override {
    return device_.tx(now, traffic_class, burst);
  }
  Picos rx_ready_at() const override { return receiver_.ready_at(); }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return device_.tx_ready_at(traffic_class);
  }
  PacketPool& packets() override { return device_.packets(); }
  PortInfo info() const override { return device_.info(); }
  void use_clock(const PollClock& clock) override { device_.use_clock(clock); }

  const ShardPortCounters& counters() const { return receiver_.counters(); }

 private:
  Port& device_;
  ShardReceiver receiver_;
};

}  // namespace paceline
