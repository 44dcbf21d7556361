// A cable made of memory: two ports in one process, usually on two threads, joined by lock-free
// rings of packet pointers. It is the real-time loopback of a test.
//
// Each end owns a packet pool that only its own thread touches. tx hands a pointer over; rx of the
// far end copies headers and payload into a packet of its own pool and gives the original back by a
// second ring, so that every packet goes home. The near end takes home what came back at each tx
// and rx.
//
// As a NIC does, a port without a free packet drops what arrives and counts it: waiting for a
// packet instead could leave two full ends waiting for each other. Data leaves a part of the ring
// to the control class, so that acknowledgements never queue up behind a refusal of data.
//
// Threads: a RingPort belongs to one thread. The cable must outlive both threads' use of its ports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dataplane/base/containers/spsc_ring.h"
#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"

namespace paceline {

struct RingCableConfig {
  Rate link_rate = rate_from_gbps(100);  // what engines pace to; the rings themselves do not
  WireAccounting wire{};
  std::uint16_t mtu_bytes = 4096;
  std::uint16_t payload_room = 4096;  // mtu_bytes, at least
  std::uint32_t ring_packets = 512;   // rounded up to a power of two, at least 8
  std::uint32_t pool_packets = 4096;  // per end, more than both rings of a direction hold
};

struct RingPortCounters {
  std::uint64_t tx_packets = 0;
  std::uint64_t tx_bytes = 0;    // on the wire
  std::uint64_t rx_packets = 0;  // given to the caller of rx
  std::uint64_t rx_bytes = 0;
  std::uint64_t rx_no_packet = 0;  // dropped: the pool was empty
  std::uint64_t rx_too_long = 0;   // dropped: longer than the payload room
  std::uint64_t tx_full = 0;       // calls of tx that left packets behind
};

namespace detail {
// One direction of a cable. `forward` carries packets, `home` brings them back.
struct RingLane {
  explicit RingLane(std::size_t packets) : forward(packets), home(2 * packets) {}
  SpscRing<Packet*> forward;
  SpscRing<Packet*> home;
};
}  // namespace detail

class RingPort final : public Port {
 public:
  RingPort(const RingCableConfig& config, detail::RingLane& out, detail::RingLane& in,
           std::uint16_t pool_id);

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return in_.forward.empty() ? kNever : Picos{0}; }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return room(traffic_class) == 0 ? kNever : Picos{0};
  }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override { return info_; }

  const RingPortCounters& counters() const { return counters_; }
  // Takes home what the far end has given back. rx and tx do it anyway; for looks at the pool.
  void reclaim();

 private:
  std::size_t room(std::uint8_t traffic_class) const;

  PortInfo info_;
  detail::RingLane& out_;
  detail::RingLane& in_;
  std::size_t control_reserve_;
  PacketPool pool_;
  RingPortCounters counters_;
};

// Both ends and the rings between them.
class RingCable {
 public:
  // Throws std::invalid_argument when the figures do not fit together.
  explicit RingCable(const RingCableConfig& config = {});
  RingPort& end(unsigned index) { return index == 0 ? a_ : b_; }  // 0 or 1

  // After both threads are done: packets still inside the rings go back to their pools. Afterwards
  // a pool's in_use() counts what its engine holds.
  void drain();

 private:
  detail::RingLane a_to_b_;
  detail::RingLane b_to_a_;
  RingPort a_;
  RingPort b_;
};

}  // namespace paceline
