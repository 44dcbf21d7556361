#include "dataplane/port/bonded_port.h"

#include <algorithm>
#include <cassert>

namespace paceline {

namespace {

// Fields of an Ethernet frame without VLAN tags: the low halves of the addresses, which tell peers
// apart, the halves before those, which name a port's subnet, and the UDP source port.
constexpr std::size_t kEtherTypeAt = 12;
constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::size_t kSubnetAt = 14 + 12;  // of IPv4's source
constexpr std::size_t kSubnetV6At = 14 + 20;
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
    : count_(ports.size()), peers_(std::make_unique<std::array<Heard, kPeers>>()) {
  assert(count_ >= 2 && count_ <= kMostPorts);
  std::copy(ports.begin(), ports.end(), ports_.begin());
  refused_by_.fill(kNone);
}

BondedPort::BondedPort(std::span<Port* const> ports, std::uint16_t first_subnet)
    : BondedPort(ports) {
  first_subnet_ = first_subnet;
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
      Heard& peer = (*peers_)[slot(*packet, kSourceAt, kSourceV6At) % kPeers];
      peer.now = static_cast<std::uint8_t>(peer.now | 1U << port);
      peer.lately = static_cast<std::uint8_t>(peer.lately | 1U << port);
    }
  }
  return taken;
}

bool BondedPort::usable(std::size_t port, std::uint8_t traffic_class) const {
  return ports_[port]->links_up() != 0 && ports_[port]->tx_ready_at(traffic_class) != kNever;
}

// The port of `among` (bit p: port p), or else of all, that takes a packet first. If several do,
// the next one after `last`; count_ if all are down or paused.
std::size_t BondedPort::free_first(std::uint8_t traffic_class, Picos now, std::uint8_t among,
                                   std::size_t last) const {
  std::size_t best = count_;
  bool best_among = false;
  Picos earliest = kNever;
  for (std::size_t i = 1; i <= count_; ++i) {
    const std::size_t port = (last + i) % count_;
    if (!usable(port, traffic_class)) continue;
    const bool is_among = (among >> port & 1U) != 0;
    const Picos ready = later(now, ports_[port]->tx_ready_at(traffic_class));
    if (is_among < best_among || (is_among == best_among && ready >= earliest)) continue;
    best = port;
    best_among = is_among;
    earliest = ready;
  }
  return best;
}

std::size_t BondedPort::port_for_data(const Packet& packet, std::uint8_t traffic_class,
                                      Picos now) const {
  const std::size_t port = source_port(packet) % count_;
  if (usable(port, traffic_class)) [[likely]]
    return port;
  return free_first(traffic_class, now, 0xFF, port);
}

// A packet whose source address belongs to no port takes the first port.
std::size_t BondedPort::port_by_address(const Packet& packet) const {
  const bool v4 = load16(packet, kEtherTypeAt) == kIpv4;
  const std::uint16_t subnet = load16(packet, v4 ? kSubnetAt : kSubnetV6At);
  const auto port = static_cast<std::uint16_t>(subnet - *first_subnet_);
  return port < count_ ? port : 0;
}

std::size_t BondedPort::tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) {
  refused_by_[traffic_class] = kNone;
  for (std::size_t i = 0; i < burst.size(); ++i) {
    Heard* const peer = traffic_class == kControlClass && !first_subnet_
                            ? &(*peers_)[slot(*burst[i], kDestinationAt, kDestinationV6At) % kPeers]
                            : nullptr;
    std::size_t port = peer != nullptr ? free_first(kControlClass, now, peer->lately, peer->last)
                       : first_subnet_ ? port_by_address(*burst[i])
                                       : port_for_data(*burst[i], traffic_class, now);
    if (port == count_ && links_up() != 0) return i;
    if (port == count_) port = 0;  // without any link that one says what becomes of it
    if (ports_[port]->tx(now, traffic_class, burst.subspan(i, 1)) == 0) {
      refused_by_[traffic_class] = static_cast<std::uint8_t>(port);
      return i;
    }
    if (peer != nullptr) note_control(*peer, port);
  }
  return burst.size();
}

void BondedPort::note_control(Heard& peer, std::size_t port) {
  peer.last = static_cast<std::uint8_t>(port);
  if (++peer.sent < kMemory) return;
  peer.lately = peer.now != 0 ? peer.now : 0xFF;
  peer.now = peer.sent = 0;
}

Picos BondedPort::rx_ready_at() const {
  Picos ready = kNever;
  for (std::size_t i = 0; i < count_; ++i) ready = earlier(ready, ports_[i]->rx_ready_at());
  return ready;
}

// A packet that was refused waits for its own port, as long as that can send.
Picos BondedPort::tx_ready_at(std::uint8_t traffic_class) const {
  const std::uint8_t refused = refused_by_[traffic_class];
  if (refused != kNone && (first_subnet_ || usable(refused, traffic_class)))
    return ports_[refused]->tx_ready_at(traffic_class);
  if (links_up() == 0) return ports_[0]->tx_ready_at(traffic_class);
  Picos ready = kNever;
  for (std::size_t i = 0; i < count_; ++i) {
    if (ports_[i]->links_up() != 0) ready = earlier(ready, ports_[i]->tx_ready_at(traffic_class));
  }
  return ready;
}

std::uint8_t BondedPort::links_up() const {
  unsigned up = 0;
  for (std::size_t i = 0; i < count_; ++i) up |= unsigned{ports_[i]->links_up()} << i;
  return static_cast<std::uint8_t>(up);
}

PortInfo BondedPort::info() const {
  PortInfo info = ports_[0]->info();
  if (!first_subnet_) info.link_rate.bps *= count_;
  return info;
}

void BondedPort::use_clock(const PollClock& clock) {
  for (std::size_t i = 0; i < count_; ++i) ports_[i]->use_clock(clock);
}

}  // namespace paceline
