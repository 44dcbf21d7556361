#include "tests/support/ring_port.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <stdexcept>

namespace paceline {

namespace {

constexpr std::uint16_t kTxBurst = 32;

// Everything but the payload's bytes, the place of the buffer, and what belongs to the pool.
void copy_packet(const Packet& from, Packet& to) {
  to.time = from.time;
  to.digest = from.digest;
  to.wire_bytes = from.wire_bytes;
  to.entropy = from.entropy;
  to.route = from.route;
  to.header_bytes = from.header_bytes;
  to.payload_bytes = from.payload_bytes;
  to.ingress = from.ingress;
  to.traffic_class = from.traffic_class;
  to.ecn = from.ecn;
  to.payload_kind = from.payload_kind;
  to.flags = from.flags;
  to.bth_offset = from.bth_offset;
  to.icrc = from.icrc;
  std::memcpy(to.header.data(), from.header.data(), from.header_bytes);
  if (from.payload_kind == PayloadKind::owned && from.payload_bytes != 0) {
    std::memcpy(to.payload, from.payload, from.payload_bytes);
  }
}

const RingCableConfig& checked(const RingCableConfig& config) {
  if (config.link_rate.bps == 0) throw std::invalid_argument("ring cable: link rate 0");
  if (config.payload_room < config.mtu_bytes) {
    throw std::invalid_argument("ring cable: payload room is less than the MTU");
  }
  if (config.ring_packets < 8) throw std::invalid_argument("ring cable: fewer than 8 slots");
  // One direction may hold a full ring forward and what was popped on its way home.
  if (config.pool_packets <= 2 * config.ring_packets) {
    throw std::invalid_argument("ring cable: the pool must hold more than two full rings");
  }
  return config;
}

}  // namespace

RingPort::RingPort(const RingCableConfig& config, detail::RingLane& out, detail::RingLane& in,
                   std::uint16_t pool_id)
    : out_(out),
      in_(in),
      control_reserve_(out.forward.capacity() / 4),
      pool_(config.pool_packets, config.payload_room, false, pool_id) {
  info_.link_rate = config.link_rate;
  info_.wire = config.wire;
  info_.mtu_bytes = config.mtu_bytes;
  info_.payload_room = config.payload_room;
  info_.tx_burst = kTxBurst;
  info_.computes_icrc = false;
}

std::size_t RingPort::room(std::uint8_t traffic_class) const {
  const std::size_t used = out_.forward.size();  // never less than there is
  const std::size_t limit =
      out_.forward.capacity() - (traffic_class == kControlClass ? 0 : control_reserve_);
  return used < limit ? limit - used : 0;
}

void RingPort::reclaim() {
  std::array<Packet*, kTxBurst> back;
  std::size_t n;
  do {
    n = out_.home.pop(back);
    for (std::size_t i = 0; i < n; ++i) pool_.free(back[i]);
  } while (n == back.size());
}

std::size_t RingPort::tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) {
  reclaim();
  const std::size_t n = std::min(burst.size(), room(traffic_class));
  // All of it is written before the far end may see the pointer.
  for (std::size_t i = 0; i < n; ++i) {
    Packet& packet = *burst[i];
    packet.traffic_class = traffic_class;
    packet.time = now;
    packet.wire_bytes = info_.wire.wire_bytes(packet.frame_bytes(), packet.payload_bytes);
  }
  for (std::size_t i = 0; i < n; ++i) counters_.tx_bytes += burst[i]->wire_bytes;
  counters_.tx_packets += n;
  const std::size_t pushed = out_.forward.push(burst.first(n));
  assert(pushed == n);  // this side alone fills the ring, so room() can only have grown
  static_cast<void>(pushed);
  if (n != burst.size()) ++counters_.tx_full;
  return n;
}

std::size_t RingPort::rx(std::span<Packet*> burst) {
  reclaim();
  std::size_t filled = 0;
  while (filled < burst.size()) {
    std::array<Packet*, kTxBurst> arrived;
    const std::size_t wanted = std::min<std::size_t>(arrived.size(), burst.size() - filled);
    const std::size_t n = in_.forward.pop({arrived.data(), wanted});
    if (n == 0) break;
    for (std::size_t i = 0; i < n; ++i) {
      const Packet& theirs = *arrived[i];
      if (theirs.payload_kind == PayloadKind::owned && theirs.payload_bytes > info_.payload_room) {
        ++counters_.rx_too_long;
        continue;
      }
      Packet* own = pool_.alloc();
      if (own == nullptr) {
        ++counters_.rx_no_packet;
        continue;
      }
      copy_packet(theirs, *own);
      ++counters_.rx_packets;
      counters_.rx_bytes += own->wire_bytes;
      burst[filled++] = own;
    }
    // The owner takes home what is there before it sends: between two such moments at most a full
    // ring that was waiting and a full ring that was sent come back, and the way home holds both.
    const std::size_t returned = in_.home.push({arrived.data(), n});
    assert(returned == n);
    static_cast<void>(returned);
  }
  return filled;
}

RingCable::RingCable(const RingCableConfig& config)
    : a_to_b_(checked(config).ring_packets),
      b_to_a_(config.ring_packets),
      a_(config, a_to_b_, b_to_a_, 0),
      b_(config, b_to_a_, a_to_b_, 1) {}

void RingCable::drain() {
  const auto empty = [](RingPort& owner, detail::RingLane& lane) {
    Packet* packet = nullptr;
    while (lane.forward.pop(packet)) owner.packets().free(packet);
    owner.reclaim();
  };
  empty(a_, a_to_b_);
  empty(b_, b_to_a_);
}

}  // namespace paceline
