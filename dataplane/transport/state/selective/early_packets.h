// Selective repeat's responder: the packets that came ahead of the expected one, in a ring by
// packet sequence number. A WRITE that can be placed at once leaves a bit; any other packet is held
// for its turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/base/protocol/psn.h"
#include "dataplane/port/packet.h"

namespace paceline::transport {

class EarlyPackets {
 public:
  // window: packets, a power of two and at least 64.
  explicit EarlyPackets(std::uint32_t window)
      : received_(window / 64), continued_(window / 64), held_(window, nullptr) {}

  std::int32_t window() const { return static_cast<std::int32_t>(held_.size()); }
  // One past the highest received; at least the expected one.
  Psn highest() const { return highest_; }
  std::uint32_t held() const { return held_packets_; }
  bool has(Psn psn) const { return test(received_, psn); }
  // For a placed WRITE packet: it does not end its message.
  bool continues(Psn psn) const { return test(continued_, psn); }

  void start(Psn expected) { highest_ = expected; }
  // Everything before `expected` has arrived.
  void reach(Psn expected) {
    if (before(highest_, expected)) highest_ = expected;
  }
  // The payload has been placed. Requires !has(psn), and psn within the window.
  void place(Psn psn, bool continues) {
    receive(psn);
    if (continues) set(continued_, psn);
  }
  // The packet waits for its turn. Same requirements.
  void hold(Psn psn, Packet* packet) {
    receive(psn);
    held_[slot(psn)] = packet;
    ++held_packets_;
  }
  // Forgets `psn`; returns the packet if it was held, else nullptr.
  Packet* release(Psn psn) {
    const std::uint64_t others = ~(std::uint64_t{1} << (slot(psn) % 64));
    received_[slot(psn) / 64] &= others;
    continued_[slot(psn) / 64] &= others;
    Packet* const packet = std::exchange(held_[slot(psn)], nullptr);
    if (packet != nullptr) --held_packets_;
    return packet;
  }
  // As release(), for any held packet; nullptr: none is left. Bits of placed packets stay.
  Packet* release_any() {
    if (held_packets_ == 0) return nullptr;
    for (Packet*& packet : held_) {
      if (packet == nullptr) continue;
      --held_packets_;
      return std::exchange(packet, nullptr);
    }
    return nullptr;
  }

 private:
  std::size_t slot(Psn psn) const { return psn.value() & (held_.size() - 1); }
  void set(std::vector<std::uint64_t>& bits, Psn psn) {
    bits[slot(psn) / 64] |= std::uint64_t{1} << (slot(psn) % 64);
  }
  bool test(const std::vector<std::uint64_t>& bits, Psn psn) const {
    return (bits[slot(psn) / 64] >> (slot(psn) % 64) & 1U) != 0;
  }
  void receive(Psn psn) {
    set(received_, psn);
    reach(psn + 1);
  }

  std::vector<std::uint64_t> received_;
  std::vector<std::uint64_t> continued_;
  std::vector<Packet*> held_;
  std::uint32_t held_packets_ = 0;
  Psn highest_;
};

}  // namespace paceline::transport
