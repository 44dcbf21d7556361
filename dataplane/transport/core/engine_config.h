// Configuration of an engine, given at construction. An engine is one NIC.
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>

#include "cc/plugin/guard.h"
#include "dataplane/base/units.h"
#include "dataplane/transport/core/cc_setup.h"
#include "dataplane/transport/state/selective/path_set.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::transport {

class ParamStore;

// What is assumed about peers before they have said anything.
enum class PeerPolicy : std::uint8_t {
  paceline,  // every peer speaks the control protocol (emulated scenarios)
  roce,      // none does
  discover,  // ask with HELLO; roce until answered
};

// How losses are repaired between peers that both offer it; with all other peers it is go-back-N.
enum class Reliability : std::uint8_t {
  go_back_n,  // vol. 1, 9.7: everything from the first lost packet on is sent again
  selective,  // only lost packets are sent again; XACK tells which
};

struct EngineConfig {
  wire::IpAddress address{};
  // The address in the other family, for peers of that family. Unspecified: none.
  wire::IpAddress other_address{};
  wire::MacAddress mac{};
  std::uint32_t payload_mtu = 4096;        // payload bytes of a full packet
  std::uint32_t ack_every = 1;             // the requester asks for an ACK every n packets
  std::uint32_t pacing_burst_packets = 2;  // how far a late pacer may catch up, in packets...
  // ... or in time, if that is more. In real time, polls come late; without this, a fast pacer
  // would lose the time during which the host stops.
  Picos pacing_catch_up{0};
  Picos cnp_interval = picos_from_micros(50);  // per flow; 0 = a CNP for every marked packet
  bool cnp_in_ack = false;                     // calibration: BECN in the ACK instead of CNPs
  // An ACK replaces an earlier ACK of the same queue pair from the same poll (vol. 1, 9.7.5.1.2).
  // Useful where polls find bursts: in real time.
  bool coalesce_acks = false;
  // If less than a packet's worth of data waits for the port, answers go behind it: the peer gets
  // the data sooner, and handles the answers while it would otherwise wait.
  bool answers_last = false;
  // How many bursts of 16 packets a poll takes at most; 0: all there are. One is enough where the
  // next poll follows at once: the application then answers the first burst while others come.
  std::uint32_t receive_bursts = 0;
  // Slots of destroyed queue pairs that are kept free before one is used again. A number is then
  // reused only after 63 times as many new queue pairs.
  std::uint32_t spare_queue_pairs = 0;
  bool speak_control = true;      // false: plain RoCEv2, as far as others can tell
  bool check_invariants = false;  // run the algorithms' own invariant checks at every poll
  PeerPolicy peers = PeerPolicy::paceline;
  Picos hello_interval = picos_from_micros(100);
  // Peers that will connect, by traffic class, if known beforehand (in emulated scenarios a
  // connection is made at its first message). Peers are told at least this number.
  std::array<std::uint32_t, kTrafficClasses> expected_peers{};
  Reliability reliability = Reliability::go_back_n;
  Multipath multipath = Multipath::none;  // needs selective repeat
  std::uint32_t paths = 64;               // source ports of a connection, 1..PathSet::kMost
  std::uint32_t path_run = 16;            // Multipath::chunk: packets per path
  // Links that a queue pair can use, each to a fabric of its own or to its own switch. The UDP
  // source port, modulo their number, selects the link that data takes (port/bonded_port.h).
  std::uint32_t planes = 1;
  // Ports with addresses of their own. Those of port p, counted from 0, are `address` and
  // `other_address` with p added to the subnet (wire::subnet_of).
  std::uint32_t addressed_ports = 1;
  std::uint32_t window_packets = 512;   // of selective repeat: a power of two, 64..4096
  std::uint32_t reorder_packets = 128;  // held by a receiver until their turn, per queue pair
  bool place_in_order = false;          // WRITEs, too, are placed in the order of their numbers
  std::uint32_t base_rtt_ns = 5000;     // unloaded round trip of a full packet and its ACK
  CcChoice primary{};                   // at the start; Engine::reconfigure changes it
  CcChoice fallback{};  // reactive; used when primary is proactive, or a plug-in in quarantine
  cc::plugin::Clock plugin_clock{};  // times a plug-in's calls; in virtual time: none
  // Allocator of queue pairs, contexts and peers; must outlive the engine.
  std::pmr::memory_resource* memory = std::pmr::new_delete_resource();
  ParamStore* params = nullptr;  // where values are shared with other engines; may be null

  // The most that one queue pair can use of a NIC whose links together have `rate`.
  Rate flow_rate(Rate rate) const {
    return multipath == Multipath::none ? Rate{rate.bps / planes} : rate;
  }

  // The source address of packets to `destination`: one of its family, if there is one, and of its
  // subnet.
  wire::IpAddress source_for(const wire::IpAddress& destination) const {
    const bool first = other_address.is_unspecified() || destination.is_v4() == address.is_v4();
    const wire::IpAddress& source = first ? address : other_address;
    const std::uint16_t subnet = wire::subnet_of(destination);
    const auto port = static_cast<std::uint16_t>(subnet - wire::subnet_of(source));
    return port != 0 && port < addressed_ports ? wire::in_subnet(source, subnet) : source;
  }
};

inline constexpr unsigned kHelloTries = 3;

}  // namespace paceline::transport
