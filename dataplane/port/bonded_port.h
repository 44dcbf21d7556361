// One port over several: the links of a NIC with one queue-pair table. The engine above sees the
// rate of all together, or, if each link has an address, of one.
//
// Without such addresses:
//
// A data packet's UDP source port names its plane (source port modulo the number of ports). So an
// engine that uses consecutive source ports in turn (multipath) uses the planes in turn, and one
// that keeps to a source port keeps to a plane. What a sender learns about a source port then
// applies to that plane. A packet whose port is down or paused takes the port that is free first.
//
// Answers and other control packets carry no such choice. Among the ports by which their peer was
// heard lately, they take the one that is free first. So they even out the load of the ports, and a
// peer that has lost a port receives them. While nothing is heard of a peer, they take the ports in
// turn, so that each retry goes another way.
//
// If each link has an address, in a subnet of its own (wire::subnet_of), a packet takes the link of
// its source address, even if that link is down. While that link is busy or paused, later packets
// of the class wait, also those for other links.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/port/port.h"

namespace paceline {

class BondedPort final : public Port {
 public:
  static constexpr std::size_t kMostPorts = 8;

  // 2 to kMostPorts ports with one pool and links of one rate. They must outlive this.
  explicit BondedPort(std::span<Port* const> ports);
  // The same, with an address each: that of port i, counted from 0, is in the subnet
  // `first_subnet` + i.
  BondedPort(std::span<Port* const> ports, std::uint16_t first_subnet);

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override;
  Picos tx_ready_at(std::uint8_t traffic_class) const override;
  std::uint8_t links_up() const override;
  PacketPool& packets() override { return ports_[0]->packets(); }
  PortInfo info() const override;
  void use_clock(const PollClock& clock) override;

  std::size_t size() const { return count_; }

 private:
  static constexpr std::uint8_t kNone = 0xFF;
  static constexpr std::size_t kPeers = 256;   // of the table by peer, a power of two
  static constexpr std::uint8_t kMemory = 32;  // control packets to a peer until silence counts

  // What is known of a peer, or of several that share an entry. Bit p stands for port p.
  struct Heard {
    std::uint8_t lately = 0xFF;  // it was heard by these, or nothing is known
    std::uint8_t now = 0;        // of which since `sent` was 0
    std::uint8_t sent = 0;       // control packets
    std::uint8_t last = 0;       // port of the last of them
  };

  bool usable(std::size_t port, std::uint8_t traffic_class) const;
  std::size_t free_first(std::uint8_t traffic_class, Picos now, std::uint8_t among,
                         std::size_t last) const;
  std::size_t port_for_data(const Packet& packet, std::uint8_t traffic_class, Picos now) const;
  std::size_t port_by_address(const Packet& packet) const;
  static void note_control(Heard& peer, std::size_t port);

  std::array<Port*, kMostPorts> ports_{};
  std::size_t count_;
  std::size_t next_rx_ = 0;
  // By class: the port that refused the last packet offered; kNone: it was taken.
  std::array<std::uint8_t, kTrafficClasses> refused_by_;
  std::unique_ptr<std::array<Heard, kPeers>> peers_;  // by a hash of the address
  std::optional<std::uint16_t> first_subnet_;         // each port has an address
};

}  // namespace paceline
