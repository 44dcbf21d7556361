// One port over several: the links of a NIC with one queue-pair table and one address. The engine
// above sees the rate of all together.
//
// A data packet's UDP source port names its plane (source port modulo the number of ports), so an
// engine that uses consecutive source ports in turn (multipath) uses the planes in turn, and one
// that keeps to a source port keeps to a plane. What a sender learns about a source port is then
// about that plane. A packet whose port is down or paused takes another port.
//
// Answers and other control packets carry no such choice. The first one after a packet of its peer
// leaves by the port that this packet came by, which works at least that way; further ones take the
// ports in turn. So a peer that has lost a port hears most answers, and a retry takes another way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/port/port.h"

namespace paceline {

class BondedPort final : public Port {
 public:
  static constexpr std::size_t kMostPorts = 8;

  // 2 to kMostPorts ports with one pool and links of one rate. They must outlive this.
  explicit BondedPort(std::span<Port* const> ports);

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override;
  Picos tx_ready_at(std::uint8_t traffic_class) const override;
  bool up() const override;
  PacketPool& packets() override { return ports_[0]->packets(); }
  PortInfo info() const override;
  void use_clock(const PollClock& clock) override;

  std::size_t size() const { return count_; }

 private:
  static constexpr std::uint8_t kNone = 0xFF;
  static constexpr std::size_t kPeers = 256;  // of the table by peer, a power of two

  bool usable(std::size_t port, std::uint8_t traffic_class) const;
  std::size_t choose(const Packet& packet, std::uint8_t traffic_class);
  std::size_t usable_from(std::size_t first, std::uint8_t traffic_class) const;

  std::array<Port*, kMostPorts> ports_{};
  std::size_t count_;
  std::size_t next_rx_ = 0;
  // By class: the port that refused the last packet offered; kNone: it was taken.
  std::array<std::uint8_t, kTrafficClasses> refused_by_;
  // By a hash of the peer's address: by which port the next control packet to it leaves.
  std::unique_ptr<std::array<std::uint8_t, kPeers>> control_port_;
};

}  // namespace paceline
