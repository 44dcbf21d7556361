// Two ports on a cable that carries frames as bytes. What is received lies on the heap, a block for
// each frame and one for each payload, exactly as long as it is: one byte read too far is an error
// for the address sanitizer, which knows nothing of packet memories. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"

namespace paceline::test {

// Packets that are made when wanted and destroyed when given back, those at least that had a
// received payload.
class HeapSource final : public PacketSource {
 public:
  explicit HeapSource(std::uint16_t room) : room_(room) {}
  ~HeapSource() override;
  std::size_t take(std::span<Packet*> out) override;
  void give(std::span<Packet* const> packets) override;
  // The packet has this payload until it is given back.
  void lend(Packet& packet, std::unique_ptr<std::byte[]> payload);
  std::size_t outside() const { return outside_.size(); }

 private:
  struct Block {
    Packet packet{};
    std::unique_ptr<std::byte[]> room;
    std::unique_ptr<std::byte[]> lent;
  };
  std::uint16_t room_;
  std::unordered_map<Packet*, std::unique_ptr<Block>> outside_;
  std::vector<std::unique_ptr<Block>> spare_;
};

struct HeapPortCounters {
  std::uint64_t tx_packets = 0;
  std::uint64_t rx_packets = 0;
  std::uint64_t rx_too_long = 0;  // dropped: longer than the payload room
};

class HeapPort final : public Port {
 public:
  HeapPort(std::uint16_t mtu, std::size_t capacity, std::uint16_t id);

  void join(HeapPort& far) { far_ = &far; }
  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return arriving_.empty() ? kNever : Picos{0}; }
  // An engine asks before it builds a packet with payload: what was received until then, and has
  // been freed, is not to be built upon.
  Picos tx_ready_at(std::uint8_t) const override {
    pool_.give_back(0);
    return Picos{0};
  }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override { return info_; }
  const HeapPortCounters& counters() const { return counters_; }
  std::size_t waiting() const { return arriving_.size(); }

 private:
  struct Frame {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  PortInfo info_;
  HeapSource source_;
  mutable PacketPool pool_;
  HeapPort* far_ = nullptr;
  std::deque<Frame> arriving_;
  HeapPortCounters counters_;
};

}  // namespace paceline::test
