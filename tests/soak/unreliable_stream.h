// One direction of a UC or UD queue pair. What is delivered is intact and was sent; nothing is
// delivered more often than the network repeated it; and nothing is lost that nothing happened to.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "tests/soak/arena.h"
#include "tests/soak/stage.h"

namespace paceline::soak {

struct UnreliableSetup {
  unsigned from = 0;
  std::uint32_t qp = 0;
  std::uint32_t peer = 0;
  std::uint32_t mtu = 1024;
  std::uint64_t base = 0;  // of its part of both memories
  std::uint64_t bytes = 0;
  std::uint64_t largest = 0;  // message
  Psn first_psn;
  std::uint32_t handle = 0;        // UD: of the peer
  std::uint32_t other_handle = 0;  // the same peer, another class: every third datagram goes there
  std::uint32_t qkey = 0;
  Buffers* buffers = nullptr;  // of the peer
};

class UnreliableStream final : public Stream {
 public:
  UnreliableStream(Stage& stage, const UnreliableSetup& setup, Random random);

  void on_sent(const transport::Completion& completion) override;
  void on_received(const transport::Completion& completion) override;
  void on_weather(Psn psn, const ImpairmentVerdict& verdict) override;
  void post() override;
  void step() override;
  bool finished() const override { return closed_ && done_ == next_index_; }
  std::string state() const override;
  void check_finished() override;
  void add_to(Totals& totals) const override;

 private:
  struct Message {
    std::uint64_t index = 0;
    std::uint64_t length = 0;
    std::uint64_t key = 0;
    std::uint64_t slot = 0;
    std::uint64_t slot_bytes = 0;
    std::uint64_t at = 0;  // of its bytes, in both memories
    Psn first_psn;
    std::uint32_t packets = 1;
    std::uint32_t repeated = 0;  // packets of it that the network repeated
    std::uint32_t delivered = 0;
    transport::WorkOpcode opcode = transport::WorkOpcode::send;
    bool signaled = true;
    bool named = false;      // its first 8 bytes hold its number
    bool wrong_key = false;  // UD: must not be delivered
  };
  // So many of the newest are remembered, for what arrives late.
  static constexpr std::size_t kRemembered = 1024;

  Host& initiator() { return *stage_.hosts[setup_.from]; }
  Host& target() { return *stage_.hosts[1 - setup_.from]; }
  bool ud() const { return setup_.handle != 0; }
  bool draw();
  void forget_oldest();
  void check_bytes(std::span<const std::byte> bytes, const Message& m);

  Stage& stage_;
  UnreliableSetup setup_;
  Random random_;
  SlotRing ring_;
  std::deque<Message> messages_;  // not forgotten
  bool drawn_ = false;            // the newest is not posted yet
  bool closed_ = false;
  std::uint64_t next_index_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t depth_ = 4;
  Psn next_psn_;
  std::uint64_t payload_ = 0;    // posted
  std::uint64_t expected_ = 0;   // messages that a receive is completed for, if nothing happens
  std::uint64_t delivered_ = 0;  // of these, at least once
  std::uint64_t incidents_ = 0;  // packets that did not just pass
};

}  // namespace paceline::soak
