// The emulated fabric between ports. A host of the fabric is the process, virtual machine or
// container behind a DPDK device, or an engine of this process on a ring. Frames received by the
// port enter the fabric on that host's link; frames that the fabric delivers to the host leave by
// the port. Rates, delays, marks, pauses, losses, reordering, duplicates, damage and link events of
// the fabric apply to real frames, with real bytes.
//
// Frames are copied into packets of the fabric and out of them. The MAC address, learned from
// frames that hosts send, decides where a frame goes. Frames to unknown addresses and to groups
// (ARP, neighbour discovery) go to all other ports, a copy each, which the sender's link carries
// one after another. So this code knows nothing of ARP, IP or RoCEv2, with one exception. In a
// damaged RoCEv2 packet a bit that its ICRC covers is flipped; any other damaged frame would fail
// Ethernet's check sequence, which no port shows, and is dropped.
//
// As in real_time_run.h, events of the fabric happen at their own time. Frames enter when the port
// is polled, in the thread's turn.
//
// One thread, which is also that of the ports.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/base/numbers/histogram.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/driver/clock/wall_clock.h"
#include "dataplane/fabric/network.h"
#include "dataplane/port/port.h"

namespace paceline {

struct BridgePort {
  std::uint32_t host = 0;
  Port* port = nullptr;  // must outlive the bridge
};

// Counters of one port.
struct BridgeCounters {
  std::uint64_t rx_packets = 0;    // came in by the port
  std::uint64_t rx_too_long = 0;   // of these, longer than the fabric's packets; dropped
  std::uint64_t rx_full = 0;       // dropped: too many wait for the host's link
  std::uint64_t rx_nowhere = 0;    // dropped: for a host of this same port, or there is no other
  std::uint64_t rx_flooded = 0;    // of these: went to all others
  std::uint64_t tx_packets = 0;    // left by the port
  std::uint64_t tx_full = 0;       // dropped: the port is full
  std::uint64_t tx_no_packet = 0;  // dropped: the port has no packet free
  std::uint64_t tx_damaged = 0;    // left with a wrong bit
  std::uint64_t tx_bad_frame = 0;  // dropped: damaged, and no RoCEv2 packet
};

class FabricBridge {
 public:
  // The spec's transmit_ahead, payload_room and computes_icrc are set as they must be here. Throws
  // std::invalid_argument as Network does, and for a host that the fabric does not have or that has
  // two ports.
  FabricBridge(fabric::FabricSpec spec, std::span<const BridgePort> ports);
  ~FabricBridge();
  FabricBridge(const FabricBridge&) = delete;
  FabricBridge& operator=(const FabricBridge&) = delete;

  // Handles everything up to `now`: takes frames from the ports, processes what is due, hands over
  // arrivals. True if there was anything.
  bool turn(Picos now);
  // When the fabric has something to do next; ports have to be asked.
  Picos next_deadline() { return wheel_.next_time(); }
  // Turns until `stop`, or until `duration` is over. Returns the time then. Yields the processor
  // now and then while there is nothing to do.
  Picos run(WallClock& clock, const std::atomic<bool>& stop, Picos duration = kNever);

  fabric::Network& network() { return network_; }
  const BridgeCounters& counters(std::size_t port) const { return ends_[port].counters; }
  std::size_t ports() const { return ends_.size(); }
  // Packets that wait for a link or for a port.
  std::size_t waiting() const;
  // Nanoseconds between the time at which a packet arrived at a host and its turn.
  const Histogram& lateness_ns() const { return lateness_ns_; }

 private:
  struct Waiting {
    Packet* packet;
    std::uint32_t to;
  };
  struct End {
    std::uint32_t host = 0;
    Port* port = nullptr;
    std::deque<Waiting> in;   // for the host's link, packets of the fabric
    std::deque<Packet*> out;  // for the port, packets of the port's
    BridgeCounters counters;
  };

  struct Body;
  static fabric::FabricSpec prepared(fabric::FabricSpec spec, std::span<const BridgePort> ports);
  bool receive(End& end);
  void route(End& end, const Packet& packet);
  void enter(End& end, const Packet& packet, std::uint32_t to);
  bool send_on(End& end, Picos now);
  bool deliver(End& end, Picos now);
  void leave(End& end, const Packet& packet);
  void damage(Packet& packet);
  bool hand_over(End& end, Picos now);

  EventWheel wheel_;
  fabric::Network network_;
  std::vector<End> ends_;
  std::vector<std::uint32_t> end_of_host_;                    // kNowhere: it has no port
  std::unordered_map<std::uint64_t, std::uint32_t> learned_;  // MAC -> host; never iterated
  Random random_;
  Histogram lateness_ns_;
  Picos now_{0};
};

}  // namespace paceline
