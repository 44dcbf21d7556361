#include "dataplane/driver/ports/fabric_bridge.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "dataplane/driver/loop/run_loop.h"
#include "dataplane/port/packet_pool.h"

namespace paceline {

namespace {

constexpr std::size_t kBurst = 32;
// Packets that wait for a link or a port, per port: what a NIC's rings hold.
constexpr std::size_t kMostWaiting = 1024;
// The most learned addresses, so that invented ones cannot fill the memory.
constexpr std::size_t kMostLearned = 65'536;
constexpr std::uint32_t kNoEnd = 0xFFFF'FFFF;

std::uint64_t mac_at(const Packet& packet, std::size_t at) {
  std::uint64_t mac = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    mac = mac << 8 | std::to_integer<std::uint64_t>(packet.header[at + i]);
  }
  return mac;
}
constexpr bool is_group(std::uint64_t mac) { return (mac >> 40 & 1U) != 0; }

}  // namespace

fabric::FabricSpec FabricBridge::prepared(fabric::FabricSpec spec,
                                          std::span<const BridgePort> ports) {
  std::vector<bool> taken(spec.hosts);
  std::uint16_t room = 0;
  for (const BridgePort& port : ports) {
    if (port.host >= spec.hosts) {
      throw std::invalid_argument("host " + std::to_string(port.host) +
                                  " has a port; the fabric's "
                                  "hosts are 0 to " +
                                  std::to_string(spec.hosts - 1));
    }
    if (taken[port.host]) {
      throw std::invalid_argument("host " + std::to_string(port.host) + " has two ports");
    }
    taken[port.host] = true;
    room = std::max(room, port.port->packets().payload_room());
  }
  spec.payload_room = room;
  spec.computes_icrc = false;
  spec.transmit_ahead = Picos{0};
  for (const fabric::LinkSpec& link : spec.links) {
    spec.transmit_ahead =
        later(spec.transmit_ahead, serialization_time(2 * (std::uint64_t{room} + 256), link.rate));
  }
  return spec;
}

FabricBridge::FabricBridge(fabric::FabricSpec spec, std::span<const BridgePort> ports)
    : wheel_(fabric::Network::actors_needed(spec)),
      network_(prepared(spec, ports), wheel_, 0),
      end_of_host_(spec.hosts, kNoEnd),
      random_(spec.seed, 0x4A55) {
  for (const BridgePort& port : ports) {
    end_of_host_[port.host] = static_cast<std::uint32_t>(ends_.size());
    End& end = ends_.emplace_back();
    end.host = port.host;
    end.port = port.port;
  }
}

FabricBridge::~FabricBridge() {
  for (End& end : ends_) {
    for (const Waiting& waiting : end.in) network_.pool().free(waiting.packet);
    for (Packet* packet : end.out) end.port->packets().free(packet);
  }
}

std::size_t FabricBridge::waiting() const {
  std::size_t sum = 0;
  for (const End& end : ends_) sum += end.in.size() + end.out.size();
  return sum;
}

// Takes one burst from the port; then other ports get their turn.
bool FabricBridge::receive(End& end) {
  std::array<Packet*, kBurst> burst;
  const std::size_t n = end.port->rx(burst);
  for (std::size_t i = 0; i < n; ++i) {
    ++end.counters.rx_packets;
    route(end, *burst[i]);
    end.port->packets().free(burst[i]);
  }
  return n != 0;
}

void FabricBridge::route(End& end, const Packet& packet) {
  if (packet.header_bytes < 14) {
    ++end.counters.rx_nowhere;
    return;
  }
  const std::uint64_t source = mac_at(packet, 6);
  const std::uint64_t destination = mac_at(packet, 0);
  if (!is_group(source) && (learned_.size() < kMostLearned || learned_.contains(source))) {
    learned_[source] = end.host;
  }
  const auto known = learned_.find(destination);
  if (!is_group(destination) && known != learned_.end()) {
    if (known->second == end.host) {
      ++end.counters.rx_nowhere;
    } else {
      enter(end, packet, known->second);
    }
    return;
  }
  if (ends_.size() == 1) {
    ++end.counters.rx_nowhere;
    return;
  }
  ++end.counters.rx_flooded;
  for (const End& other : ends_) {
    if (&other != &end) enter(end, packet, other.host);
  }
}

void FabricBridge::enter(End& end, const Packet& packet, std::uint32_t to) {
  if (packet.has_bytes() && packet.payload_bytes > network_.pool().payload_room()) {
    ++end.counters.rx_too_long;
    return;
  }
  if (end.in.size() >= kMostWaiting) {
    ++end.counters.rx_full;
    return;
  }
  end.in.push_back({network_.pool().copy_of(packet), to});
}

// As many as the host's link takes; frames of one host keep their order.
bool FabricBridge::send_on(End& end, Picos now) {
  bool any = false;
  while (!end.in.empty()) {
    Packet* packet = end.in.front().packet;
    if (!network_.send(end.host, packet->traffic_class, packet, end.in.front().to, now)) break;
    end.in.pop_front();
    any = true;
  }
  return any;
}

// Flips one bit of what the ICRC covers, in the payload if there is one.
void FabricBridge::damage(Packet& packet) {
  if (packet.payload_bytes != 0 && packet.payload_kind == PayloadKind::owned) {
    const std::uint64_t bit = random_.below(8 * std::uint64_t{packet.payload_bytes});
    packet.payload[bit / 8] ^= std::byte{1} << (bit % 8);
  } else {
    packet.icrc ^= 1U << random_.below(32);
  }
}

void FabricBridge::leave(End& end, const Packet& packet) {
  if (end.out.size() >= kMostWaiting) {
    ++end.counters.tx_full;
    return;
  }
  const bool damaged = (packet.flags & packet_flag::corrupt) != 0;
  if (damaged && packet.bth_offset == 0) {
    ++end.counters.tx_bad_frame;
    return;
  }
  if (packet.has_bytes() && packet.payload_bytes > end.port->packets().payload_room()) {
    ++end.counters.tx_full;
    return;
  }
  Packet* copy = end.port->packets().copy_of(packet);
  if (copy == nullptr) {
    ++end.counters.tx_no_packet;
    return;
  }
  copy->flags = 0;
  if (damaged) {
    damage(*copy);
    ++end.counters.tx_damaged;
  }
  end.out.push_back(copy);
}

bool FabricBridge::deliver(End& end, Picos now) {
  Port& from = network_.host_port(end.host);
  std::array<Packet*, kBurst> burst;
  bool any = false;
  for (std::size_t n = from.rx(burst); n != 0; n = from.rx(burst)) {
    any = true;
    for (std::size_t i = 0; i < n; ++i) {
      lateness_ns_.record(static_cast<std::uint64_t>(to_nanos(now - burst[i]->time).count));
      leave(end, *burst[i]);
      network_.pool().free(burst[i]);
    }
  }
  return any;
}

// In the order of arrival: neighbours in the queue that are of one class go together.
bool FabricBridge::hand_over(End& end, Picos now) {
  bool any = false;
  while (!end.out.empty()) {
    std::array<Packet*, kBurst> burst;
    std::size_t n = 0;
    const std::uint8_t traffic_class = end.out.front()->traffic_class;
    while (n < burst.size() && n < end.out.size() && end.out[n]->traffic_class == traffic_class) {
      burst[n] = end.out[n];
      ++n;
    }
    const std::size_t taken =
        end.port->tx(now, traffic_class, std::span<Packet* const>(burst).first(n));
    end.counters.tx_packets += taken;
    end.out.erase(end.out.begin(), end.out.begin() + static_cast<std::ptrdiff_t>(taken));
    any = any || taken != 0;
    if (taken < n) break;
  }
  return any;
}

bool FabricBridge::turn(Picos now) {
  now_ = later(now, now_);
  bool any = false;
  for (End& end : ends_) any = receive(end) || any;
  Picos time;
  std::uint32_t actor = 0;
  while (wheel_.pop_before(now_ + Picos{1}, time, actor)) {
    network_.link_fired(actor, time);
    any = true;
  }
  network_.clear_woken();
  for (End& end : ends_) {
    any = send_on(end, now_) || any;
    any = deliver(end, now_) || any;
    any = hand_over(end, now_) || any;
  }
  return any;
}

struct FabricBridge::Body : LoopBody {
  explicit Body(FabricBridge& of) : bridge(of) {}
  bool on_turn(Picos now, Picos) { return bridge.turn(now); }

  FabricBridge& bridge;
};

Picos FabricBridge::run(WallClock& clock, const std::atomic<bool>& stop, Picos duration) {
  struct {
    WallClock& clock;
    Picos origin = clock.now();
    Picos now() { return clock.now() - origin; }
  } since{clock};
  Body body(*this);
  RunLoop({}, {}).run(since, body, stop, duration);
  network_.finish(now_);
  return now_;
}

}  // namespace paceline
