// Specification of the emulated fabric: nodes, links, switch buffers, marking, pausing, accounting.
// Plain values in SI units; the driver translates a scenario into it. Nodes are numbered hosts
// first (0 .. hosts-1), then switches.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/fabric/topology/clos.h"
#include "dataplane/fabric/topology/link_event.h"
#include "dataplane/port/port.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::fabric {

// One full-duplex link. Link i of a spec becomes the directed links 2i (a to b) and 2i+1 (b to a).
struct LinkSpec {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  Rate rate{};    // 1 Mb/s .. 8 Tb/s
  Picos delay{};  // propagation, > 0
  // Probabilities per packet, each direction, drawn in the order of departure.
  double error_rate = 0;  // it arrives corrupted
  double loss = 0;        // it vanishes
  double duplicate = 0;   // a copy follows it on the wire
  double reorder = 0;     // it arrives up to reorder_delay late, and others overtake it
};

enum class LoadBalance : std::uint8_t {
  ecmp,          // by a hash of the flow, different in every switch
  spray,         // packet by packet, the links of a group in turn
  spray_random,  // packet by packet, at random
};

// RED on the instantaneous length of the egress queue of the packet's class: never at or below
// kmin, linear to pmax at kmax, always above kmax. Only ECT packets are marked.
struct MarkingCurve {
  std::uint64_t kmin_bytes = 400'000;
  std::uint64_t kmax_bytes = 1'600'000;
  double pmax = 0.2;
};
struct EcnSpec : MarkingCurve {
  bool enabled = true;
  bool mark_at_dequeue = true;  // length behind the departing packet; else length found on arrival
  // Other curves for ports whose link is built with exactly this rate; a LinkEvent that changes the
  // rate of a link leaves its curve as it is.
  struct AtRate {
    Rate rate{};
    MarkingCurve curve;
  };
  std::vector<AtRate> at_rates;
};

// Priority flow control over a dynamically shared buffer, with the rules of the HPCC simulator's
// switch-mmu: see shared_buffer.h.
struct PfcSpec {
  bool enabled = true;
  double alpha = 0.125;               // of the free shared buffer; 1/65536 .. 64
  bool scale_alpha_with_rate = true;  // ports faster than the hosts': alpha doubles per doubling
  std::uint64_t headroom_bytes = 0;   // per port and lossless class; 0 = 3 x rate x delay
  std::uint64_t xon_offset_bytes = 3'000;
  std::uint64_t reserve_bytes = 4'096;                      // per ingress port and lossless class
  std::uint8_t lossless_classes = 1U << kDefaultDataClass;  // bit per class that may be paused
};

// Credit-based flow control in place of pauses (credits.h), for the classes that PfcSpec calls
// lossless. Every switch port and host sets a buffer aside for each such class of its link.
struct CreditSpec {
  bool enabled = false;  // not with PfcSpec::enabled
  // Per directed link and class, in whole blocks of 64 bytes; 0: see credit_buffer_of.
  std::uint64_t buffer_bytes = 0;
  // The sender is told of free room once this much has become free; 0: half of the largest packet.
  std::uint64_t update_bytes = 0;
};
inline constexpr std::uint32_t kCreditBlock = 64;
constexpr std::uint32_t credit_blocks(std::uint32_t bytes) {
  return (bytes + kCreditBlock - 1) / kCreditBlock;
}

// Packet trimming (NDP, SIGCOMM'17; Ultra Ethernet 1.0): a packet with payload that finds more than
// threshold_bytes in the egress queue of its class loses the payload and continues in `to_class`,
// which is ahead of data; if there is no room there, it is dropped. Packets of `to_class` are never
// trimmed.
struct TrimSpec {
  bool enabled = false;
  std::uint64_t threshold_bytes = 0;
  std::uint8_t to_class = kControlClass;
};

// Switches notify the sources of packets that they sample in their queues: the congestion point of
// quantised congestion notification (IEEE 802.1Qau), congestion_points.h. Only of packets with
// Ecn::ect1, which are not marked then.
struct NoticeSpec {
  bool enabled = false;
  std::uint64_t set_point_bytes = 0;  // 0: kmin of the port's marking curve
  double weight = 2;                  // of the queue's growth against its length
  std::uint64_t sample_bytes = 150'000;
};

struct FabricSpec {
  std::uint32_t hosts = 0;  // endpoints of one link each: host p * nics() + n is port p of NIC n
  std::uint32_t ports = 1;  // of a NIC
  // The ports are in one fabric, which spreads what a NIC receives over its ports; else each has a
  // fabric of its own.
  bool shared_planes = false;
  // Each port has its own address: that of port p, counted from 0, is the NIC's with p added to the
  // subnet (wire::subnet_of). Otherwise the ports of a NIC share its address.
  bool port_subnets = false;
  std::uint32_t switches = 0;
  std::vector<LinkSpec> links;
  ClosShape shape;  // where regular(): `links` are those of clos(), and routes are computed
  std::uint64_t buffer_bytes = 32ULL << 20;  // shared buffer of each switch
  EcnSpec ecn;
  PfcSpec pfc;
  CreditSpec credit;
  TrimSpec trim;
  NoticeSpec notice;
  LoadBalance load_balance = LoadBalance::ecmp;
  // Weights of classes that share what the others leave by deficit round robin. 0: strict priority,
  // the higher class first, ahead of all classes with a weight.
  std::array<std::uint32_t, kTrafficClasses> class_weights{};
  // Classes in which switches queue acknowledgements (NAKs, XACKs and those of atomics included)
  // and CNPs, where these come in the control class. Hosts send both before all data, and no pause
  // of these classes holds a host's own.
  std::uint8_t ack_class = kControlClass;
  std::uint8_t cnp_class = kControlClass;
  Picos reorder_delay = picos_from_micros(10);  // LinkSpec::reorder: lateness uniform in (0, this]

  std::vector<LinkEvent> events;  // any order; those at one time happen in the order given
  bool changeable = false;        // more are given while it runs: Network::change
  // Packets that a host sends by a link that is down are lost, as on hardware, so that senders give
  // up in time; else they wait for the link.
  bool hosts_lose_when_down = false;
  // After a link failed or came back, switches forward as before for this long; then next hops are
  // computed again.
  Picos reroute_delay = picos_from_micros(100);
  // Packets that wait for a failed link, or are sent to it before the switch knows of the failure:
  // dropped, or kept in the queue until the link is back.
  bool keep_queued_when_down = false;
  WireAccounting wire;  // what a packet occupies on links and is charged for in buffers

  // Share of the proactive control packets lost at the sender's NIC, in millionths. Which packets:
  // bit i of control_opcodes stands for BTH opcode 0xC0 + i.
  std::uint32_t drop_control_ppm = 0;
  std::uint64_t control_opcodes = 0x07;  // HELLO, REQUEST, GRANT

  std::uint64_t seed = 1;
  std::uint32_t subnet_base = 0x0A00'0000;  // host h has the IPv4 address subnet_base + h + 1
  // ... and an IPv6 address: these 64 bits, 32 of zero, and the IPv4 address. A local prefix (RFC
  // 4193).
  std::uint64_t prefix_v6 = 0xFD00'0000'0000'0000;
  std::uint16_t mtu_bytes = 4096;  // PortInfo of every host port
  std::uint16_t payload_room = 0;  // > 0: packets carry payload buffers of this size
  bool computes_icrc = true;       // PortInfo: engines need not compute the ICRC
  bool lends_payload = false;      // PortInfo: packets may refer to their senders' memory
  // Switches put a record of telemetry into each packet that wants one (packet_flag::telemetry)
  // when it leaves them, up to kIntHops; such a packet takes wire::kIntHeaderBytes more.
  bool telemetry = false;

  // The transmit ring of a host's port: a packet is taken while its wire is busy for no longer than
  // this, and follows without a gap. 0: only when the wire is free, for hosts that are polled in
  // time.
  Picos transmit_ahead{0};

  // Puts every departure into the event queue instead of deciding it when its result is needed.
  // Slower; the results are the same, and a test checks that.
  bool exact_departures = false;
  std::uint32_t initial_packets = 4096;  // the pool grows beyond

  std::uint32_t nics() const { return hosts / ports; }
};

// Every reason why the spec cannot be built (empty: it can): numbers out of range, hosts without or
// with several links. Never aborts.
std::vector<std::string> check_buildable(const FabricSpec& spec);
// The same, and whether some hosts cannot reach each other, with which a network can still be
// built.
std::vector<std::string> check(const FabricSpec& spec);

// For each host the first host that is connected to it: two hosts reach each other, if all links
// are up, exactly when their first host is the same. `spec` must be buildable.
std::vector<std::uint32_t> islands(const FabricSpec& spec);

// The IPv6 address of a host.
wire::IpAddress host_address_v6(const FabricSpec& spec, std::uint32_t host);
// The host with this address, of either family; spec.hosts or more if there is none.
std::uint32_t host_of(const FabricSpec& spec, const wire::IpAddress& address);
// The host whose address has these last 32 bits, counted from the first one's.
inline std::uint32_t host_at(const FabricSpec& spec, std::uint32_t offset) {
  if (!spec.port_subnets) return offset;
  const std::uint32_t port = offset >> 16;
  const std::uint32_t nic = offset & 0xFFFF;
  return nic < spec.nics() && port < spec.ports ? port * spec.nics() + nic : spec.hosts;
}

// Bytes of headroom of a switch port on this link, per lossless class: as given, or three times
// what the link carries in one propagation delay (HPCC simulator, third.cc).
std::uint64_t headroom_of(const FabricSpec& spec, const LinkSpec& link);

// Wire bytes of the largest packet.
std::uint32_t largest_packet(const FabricSpec& spec);
// Bytes that the receiver of this link has room for, per lossless class, with credits: as given, or
// enough for a lone sender at line rate. That is what the link carries in a round trip (a sixteenth
// more, because packets of a kilobyte and above fill their last block only partly), the lag of
// updates, three of the largest packets (one being sent, one that asks for credits, one on the wire
// that an update waits for), and what a NIC takes ahead.
std::uint64_t credit_buffer_of(const FabricSpec& spec, const LinkSpec& link);
// Whole blocks, as given or half of the largest packet.
std::uint64_t credit_update_of(const FabricSpec& spec);

}  // namespace paceline::fabric
