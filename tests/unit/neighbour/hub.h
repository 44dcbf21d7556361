// An Ethernet of stations in virtual time: what one sends, every other one gets a little later,
// whatever the address, as on a hub; so stations have to pick what is theirs.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"

namespace paceline::neighbour::test {

class Hub;

class HubPort final : public Port {
 public:
  HubPort(Hub& hub, std::uint16_t id, std::uint32_t pool_packets)
      : hub_(hub), pool_(pool_packets, 4096, false, id) {}

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return arriving_.empty() ? kNever : arriving_.front().at; }
  Picos tx_ready_at(std::uint8_t) const override { return busy_until_; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override {
    PortInfo info;
    info.link_rate = rate_from_gbps(10);
    info.payload_room = 4096;
    info.tx_burst = 8;
    return info;
  }

  void set_now(Picos now) { now_ = now; }
  // Takes at most so many in a call of tx, and no more for a microsecond then.
  void limit_calls(std::size_t most) { most_ = most; }
  // A frame out of nowhere.
  void inject(Picos at, std::span<const std::byte> frame);
  std::uint64_t calls() const { return calls_; }

 private:
  friend class Hub;
  struct Frame {
    Picos at;
    Packet packet;
    std::vector<std::byte> payload;
  };
  Hub& hub_;
  PacketPool pool_;
  Picos now_{0};
  Picos busy_until_{0};
  std::size_t most_ = 1000;
  std::uint64_t calls_ = 0;
  std::deque<Frame> arriving_;
};

class Hub {
 public:
  explicit Hub(std::size_t stations, std::uint32_t pool_packets = 2048) {
    for (std::size_t i = 0; i < stations; ++i) {
      ports_.push_back(
          std::make_unique<HubPort>(*this, static_cast<std::uint16_t>(i), pool_packets));
    }
  }
  HubPort& port(std::size_t i) { return *ports_[i]; }
  Picos delay = picos_from_micros(5);
  // Asked about every frame that is sent; false: it is lost.
  std::function<bool(std::size_t from, const Packet&)> carry;
  // Unplugged stations hear and say nothing.
  void plug(std::size_t station, bool in) {
    unplugged_.resize(ports_.size());
    unplugged_[station] = !in;
  }

 private:
  friend class HubPort;
  void send(Picos now, const HubPort& from, const Packet& packet) {
    unplugged_.resize(ports_.size());
    if (unplugged_[from.pool_.id()]) return;
    if (carry && !carry(from.pool_.id(), packet)) return;
    for (const auto& port : ports_) {
      if (port.get() == &from || unplugged_[port->pool_.id()]) continue;
      const auto* payload = packet.payload;
      const std::size_t bytes =
          packet.payload_kind == PayloadKind::owned ? packet.payload_bytes : 0;
      port->arriving_.push_back({now + delay, packet, {payload, payload + bytes}});
    }
  }
  std::vector<std::unique_ptr<HubPort>> ports_;
  std::vector<bool> unplugged_;
};

inline std::size_t HubPort::rx(std::span<Packet*> burst) {
  std::size_t n = 0;
  while (n < burst.size() && !arriving_.empty() && arriving_.front().at <= now_) {
    Packet* packet = pool_.alloc();
    if (packet == nullptr) throw std::runtime_error("a pool of the hub is empty");
    std::byte* const payload = packet->payload;
    *packet = arriving_.front().packet;
    packet->payload = payload;
    packet->pool_id = pool_.id();
    packet->next = nullptr;
    packet->time = arriving_.front().at;
    const auto& bytes = arriving_.front().payload;
    if (!bytes.empty()) std::memcpy(payload, bytes.data(), bytes.size());
    arriving_.pop_front();
    burst[n++] = packet;
  }
  return n;
}

inline std::size_t HubPort::tx(Picos now, std::uint8_t traffic_class,
                               std::span<Packet* const> burst) {
  ++calls_;
  if (busy_until_ > now) return 0;
  const std::size_t n = std::min(burst.size(), most_);
  if (n < burst.size()) busy_until_ = now + picos_from_micros(1);
  for (Packet* packet : burst.first(n)) {
    packet->traffic_class = traffic_class;
    packet->wire_bytes = info().wire.wire_bytes(packet->frame_bytes(), packet->payload_bytes);
    hub_.send(now, *this, *packet);
    pool_.free(packet);
  }
  return n;
}

inline void HubPort::inject(Picos at, std::span<const std::byte> frame) {
  Frame f{at, {}, {}};
  const std::size_t headers = std::min(frame.size(), kMaxHeaderBytes);
  std::copy_n(frame.begin(), headers, f.packet.header.begin());
  f.packet.header_bytes = static_cast<std::uint16_t>(headers);
  f.packet.payload_bytes = static_cast<std::uint16_t>(frame.size() - headers);
  f.packet.payload_kind = f.packet.payload_bytes == 0 ? PayloadKind::none : PayloadKind::owned;
  f.payload.assign(frame.begin() + static_cast<long>(headers), frame.end());
  const auto later_than = [](Picos t, const Frame& other) { return t < other.at; };
  arriving_.insert(std::upper_bound(arriving_.begin(), arriving_.end(), at, later_than),
                   std::move(f));
}

// A host's configuration: 10.0.0.N/24 and fd00::N/64, MAC 02:00:00:00:00:N.
inline HostConfig host_config(std::uint32_t n) {
  HostConfig config;
  config.mac = wire::MacAddress::local(n);
  wire::IpAddress v6;
  v6.bytes[0] = std::byte{0xFD};
  v6.bytes[15] = static_cast<std::byte>(n);
  config.addresses = {{wire::IpAddress::v4(0x0A00'0000 + n), 24}, {v6, 64}};
  config.announcements = 0;
  return config;
}

inline wire::IpAddress v4(std::uint32_t n) { return wire::IpAddress::v4(0x0A00'0000 + n); }
inline wire::IpAddress v6(std::uint32_t n) { return host_config(n).addresses[1].address; }
inline wire::MacAddress mac(std::uint32_t n) { return wire::MacAddress::local(n); }

}  // namespace paceline::neighbour::test
