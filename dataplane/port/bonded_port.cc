#include "dataplane/port/bonded_port.h"

#include <algorithm>
#include <cassert>

namespace paceline {

namespace {

// Of an Ethernet frame without VLAN tags: the low halves of the addresses, which tell peers apart,
// and the UDP source port.
constexpr std::size_t kEtherTypeAt = 12;
constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::size_t kSourceAt = 14 + 14;       // of IPv4
constexpr std::size_t kDestinationAt = 14 + 18;  // likewise
constexpr std::size_t kSourceV6At = 14 + 22;
constexpr std::size_t kDestinationV6At = 14 + 38;

std::uint16_t load16(const Packet& packet, std::size_t at) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(packet.header[at]) << 8 |
                                    std::to_integer<unsigned>(packet.header[at + 1]));
}

std::size_t slot(const Packet& packet, std::size_t v4_at, std::size_t v6_at) {
  const bool v4 = load16(packet, kEtherTypeAt) == kIpv4;
  const std::uint16_t low = load16(packet, v4 ? v4_at : v6_at);
  return static_cast<std::size_t>(low ^ low >> 8);
}

// Right before the base transport header stands UDP.
std::uint16_t source_port(const Packet& packet) {
  return packet.bth_offset >= 8 ? load16(packet, packet.bth_offset - std::size_t{8})
                                : std::uint16_t{0};
}

}  // namespace

BondedPort::BondedPort(std::span<Port* const> ports)
    : count_(ports.size()), control_port_(std::make_unique<std::array<std::uint8_t, kPeers>>()) {
  assert(count_ >= 2 && count_ <= kMostPorts);
  std::copy(ports.begin(), ports.end(), ports_.begin());
  refused_by_.fill(kNone);
  control_port_->fill(0);
}

// Each call begins with another port, so that none is left waiting.
std::size_t BondedPort::rx(std::span<Packet*> burst) {
  std::size_t taken = 0;
  next_rx_ = next_rx_ + 1 < count_ ? next_rx_ + 1 : 0;
  for (std::size_t i = 0; i < count_ && taken < burst.size(); ++i) {
    const std::size_t port = (next_rx_ + i) % count_;
    const std::size_t from = taken;
    taken += ports_[port]->rx(burst.subspan(taken));
    for (const Packet* packet : burst.subspan(from, taken - from)) {
      (*control_port_)[slot(*packet, kSourceAt, kSourceV6At) % kPeers] =
          static_cast<std::uint8_t>(port);
    }
  }
  return taken;
}

bool BondedPort::usable(std::size_t port, std::uint8_t traffic_class) const {
  return ports_[port]->up() && ports_[port]->tx_ready_at(traffic_class) != kNever;
}

// `first`, or the next one that is up and not paused; count_ when there is none.
std::size_t BondedPort::usable_from(std::size_t first, std::uint8_t traffic_class) const {
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t port = (first + i) % count_;
    if (usable(port, traffic_class)) return port;
  }
  return count_;
}

std::size_t BondedPort::choose(const Packet& packet, std::uint8_t traffic_class) {
  if (traffic_class == kControlClass) {
    return usable_from((*control_port_)[slot(packet, kDestinationAt, kDestinationV6At) % kPeers],
                       traffic_class);
  }
  const std::size_t path = source_port(packet);
  if (usable(path % count_, traffic_class)) [[likely]]
    return path % count_;
  // What would all go to the next port is spread over those that are left.
  return usable_from(path / count_ % count_, traffic_class);
}

std::size_t BondedPort::tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) {
  refused_by_[traffic_class] = kNone;
  for (std::size_t i = 0; i < burst.size(); ++i) {
    const std::size_t port = choose(*burst[i], traffic_class);
    if (port == count_) return i;
    const std::size_t peer = traffic_class == kControlClass
                                 ? slot(*burst[i], kDestinationAt, kDestinationV6At) % kPeers
                                 : kPeers;
    if (ports_[port]->tx(now, traffic_class, burst.subspan(i, 1)) == 0) {
      refused_by_[traffic_class] = static_cast<std::uint8_t>(port);
      return i;
    }
    if (peer != kPeers) (*control_port_)[peer] = static_cast<std::uint8_t>((port + 1) % count_);
  }
  return burst.size();
}

Picos BondedPort::rx_ready_at() const {
  Picos ready = kNever;
  for (std::size_t i = 0; i < count_; ++i) ready = earlier(ready, ports_[i]->rx_ready_at());
  return ready;
}

// A packet that was refused waits for its own port, as long as that can send.
Picos BondedPort::tx_ready_at(std::uint8_t traffic_class) const {
  const std::uint8_t refused = refused_by_[traffic_class];
  if (refused != kNone && usable(refused, traffic_class))
    return ports_[refused]->tx_ready_at(traffic_class);
  Picos ready = kNever;
  for (std::size_t i = 0; i < count_; ++i) {
    if (ports_[i]->up()) ready = earlier(ready, ports_[i]->tx_ready_at(traffic_class));
  }
  return ready;
}

bool BondedPort::up() const {
  return std::any_of(ports_.begin(), ports_.begin() + static_cast<std::ptrdiff_t>(count_),
                     [](const Port* port) { return port->up(); });
}

PortInfo BondedPort::info() const {
  PortInfo info = ports_[0]->info();
  info.link_rate.bps *= count_;
  return info;
}

void BondedPort::use_clock(const PollClock& clock) {
  for (std::size_t i = 0; i < count_; ++i) ports_[i]->use_clock(clock);
}

}  // namespace paceline
