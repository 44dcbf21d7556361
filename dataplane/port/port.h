// The seam between the transport engine and the world: an emulated NIC, a memory ring, a DPDK
// device. One virtual call per burst, none per packet. Called only on the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/units.h"
#include "dataplane/port/packet.h"
#include "dataplane/port/poll_clock.h"

namespace paceline {

// How many bytes of a link's time a packet takes. Ports and engines use the same rule, so that a
// pacer at line rate and the wire agree to the picosecond.
struct WireAccounting {
  std::uint32_t frame_overhead = 20;  // preamble, start delimiter and gap on top of the frame
  // Non-zero (calibration against simulators that count so): a packet with payload takes payload +
  // this, any other small_packet.
  std::uint32_t fixed_overhead = 0;
  std::uint32_t small_packet = 60;

  constexpr std::uint32_t wire_bytes(std::uint32_t frame_bytes, std::uint32_t payload_bytes) const {
    if (fixed_overhead != 0) {
      return payload_bytes != 0 ? payload_bytes + fixed_overhead : small_packet;
    }
    return (frame_bytes < 64 ? 64 : frame_bytes) + frame_overhead;
  }
};

struct PortInfo {
  Rate link_rate{};
  WireAccounting wire{};
  std::uint16_t mtu_bytes = 4096;  // largest RoCE path MTU the port carries
  std::uint16_t payload_room = 0;  // bytes an owned payload buffer holds; 0: elided only
  std::uint16_t tx_burst = 1;      // packets worth offering in one call of tx
  bool computes_icrc = false;      // Packet::icrc is not used; else the engine fills and checks it
  bool telemetry = false;          // packets are LongPackets, and switches fill their tails
  bool notices = false;            // switches notify the senders of packets with Ecn::ect1
  // Packets may refer to the sender's memory: nothing changes a payload on the way, and
  // PacketPool::end_loans() finds all such packets, even those that have left.
  bool lends_payload = false;
  // Received packets carry their time of arrival: Packet::time, by the clock that the engine is
  // polled with, not after the poll that finds the packet; 0 if it is not known. Else it is not
  // used.
  bool stamps_arrivals = false;
};

class Port {
 public:
  Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  virtual ~Port() = default;

  // Takes up to burst.size() received packets; the caller owns them and frees each to packets().
  virtual std::size_t rx(std::span<Packet*> burst) = 0;

  // Offers packets of one class; takes ownership of the first n accepted and returns n.
  // `now` is the time of the poll.
  virtual std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) = 0;

  // Earliest time at which rx may return a packet, kNever when nothing is known to be coming.
  virtual Picos rx_ready_at() const = 0;

  // Earliest time at which tx accepts a packet of the class; kNever while the class is paused
  // (a resume wakes the engine).
  virtual Picos tx_ready_at(std::uint8_t traffic_class) const = 0;

  // Bit p: link p of the NIC carries packets, as far as this end knows. A port of one link has
  // link 0.
  virtual std::uint8_t links_up() const { return 1; }

  // The pool this port's packets come from and return to.
  virtual PacketPool& packets() = 0;

  virtual PortInfo info() const = 0;

  // The clock from which times of polls will be read; {}: none. Ports that stamp arrivals need it.
  // On the engine's thread.
  virtual void use_clock(const PollClock& /*clock*/) {}
};

}  // namespace paceline
