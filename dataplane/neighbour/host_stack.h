// Protocols of a host on Ethernet besides RoCEv2: ARP (RFC 826, 5227), IPv6 neighbour solicitation
// and advertisement (RFC 4861), ICMP echo (RFC 792, 4443). Frames in, a verdict out;
// answers are made in the received packet's own buffer. No port, no clock, no allocation after
// construction; owned by one thread.
//
// A frame that is not RoCEv2 is a Packet with bth_offset 0: the header has as much of it as fits,
// the payload the rest, and no ICRC follows.
//
// RoCEv2 frames are recognised (for one of our addresses, UDP port 4791) and left to the engine,
// which judges them; the tag of the configured VLAN is taken out, so that the engine sees none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/base/numbers/random.h"
#include "dataplane/neighbour/host_routes.h"
#include "dataplane/neighbour/neighbour_config.h"
#include "dataplane/neighbour/neighbour_table.h"
#include "dataplane/port/packet.h"
#include "dataplane/wire/host/arp.h"
#include "dataplane/wire/host/ethernet.h"
#include "dataplane/wire/host/host_error.h"
#include "dataplane/wire/host/icmp.h"
#include "dataplane/wire/host/ndp.h"

namespace paceline::neighbour {

struct HostCounters {
  std::uint64_t roce = 0;           // left to the engine
  std::uint64_t other_mac = 0;      // to another station, or a group that we are not in
  std::uint64_t other_vlan = 0;     // in another VLAN
  std::uint64_t untagged = 0;       // without a tag where one is configured
  std::uint64_t other_address = 0;  // to or about an IP address that is not ours
  std::uint64_t own_frames = 0;     // our own came back
  std::uint64_t arp_requests = 0;   // of others, good ones, whomever they ask for
  std::uint64_t arp_replies = 0;
  std::uint64_t arp_answers = 0;  // that we gave
  std::uint64_t nd_solicitations = 0;
  std::uint64_t nd_advertisements = 0;
  std::uint64_t nd_answers = 0;
  std::uint64_t duplicates_denied =
      0;                        // another host asked whether our address is free (ARP probe, DAD)
  std::uint64_t conflicts = 0;  // another host uses our address
  std::uint64_t defences = 0;   // conflicts answered with an announcement
  std::uint64_t echo_requests = 0;
  std::uint64_t echo_answers = 0;
  std::uint64_t echo_limited = 0;    // more than echo_per_second
  std::uint64_t echo_unwanted = 0;   // answer_echo is off
  std::uint64_t echo_replies = 0;    // received; not requested
  wire::HostErrorCounters errors{};  // refused, by reason
};

class HostStack {
 public:
  // `config` without problems.
  HostStack(const HostConfig& config, Random random);

  enum class Verdict : std::uint8_t {
    engine,   // RoCEv2 for one of our addresses, without a tag now
    answer,   // the packet is an answer now: send it in its traffic_class
    taken,    // learned from or counted; free it
    refused,  // counted by reason; free it
  };
  struct Result {
    Verdict verdict = Verdict::taken;
    // A neighbour whose address has just become known, or NeighbourTable::kNone.
    std::uint32_t resolved = NeighbourTable::kNone;
  };
  Result receive(Picos now, Packet& packet) {
    const Verdict quick = recognise(packet);
    if (quick == Verdict::engine) [[likely]] {
      ++counters_.roce;
      return {Verdict::engine};
    }
    return quick == Verdict::refused ? Result{quick} : receive_other(now, packet);
  }

  // Each fills `packet` (of the port's pool) with a whole frame, to be sent in its traffic_class.
  void build_solicit(const Neighbour& neighbour, bool unicast, Packet& packet) const;
  // An ARP announcement (RFC 5227, 2.3) or unsolicited advertisement (RFC 4861, 7.2.6) of an own
  // address.
  void build_announcement(std::uint8_t own, Packet& packet) const;

  // Announces all own addresses from this time on, config.announcements times altogether.
  void announce(Picos now);
  Picos next_announcement() const { return next_announcement_; }
  // The announcements of next_announcement() are being made.
  void announced(Picos now);

  // The port has another MAC address from now on (failover): neighbours are told.
  void set_mac(Picos now, const wire::MacAddress& mac);
  const wire::MacAddress& mac() const { return mac_; }

  // The tag of a frame in this class; nothing where no VLAN is configured.
  std::optional<std::uint16_t> tci(std::uint8_t traffic_class) const {
    if (vlan_id_ == 0) return std::nullopt;
    return wire::vlan_tci(priority_of_class_[traffic_class & 7U], vlan_id_);
  }

  const HostRoutes& routes() const { return routes_; }
  NeighbourTable& table() { return table_; }
  const NeighbourTable& table() const { return table_; }
  const HostCounters& counters() const { return counters_; }

 private:
  // engine or refused; taken: it has to be looked at more closely.
  Verdict recognise(Packet& packet);
  bool take_tag(Packet& packet);
  Result receive_other(Picos now, Packet& packet);
  Result receive_arp(Picos now, Packet& packet);
  Result receive_nd(Picos now, Packet& packet);
  Result receive_solicitation(Picos now, const wire::NdMessage& message, Packet& packet);
  Result receive_echo(Picos now, Packet& packet, bool ipv6);
  Result refuse(wire::HostError reason);
  Result conflict(Picos now, std::uint8_t own, Packet& packet);
  bool echo_allowed(Picos now);
  // Starts a frame of our own; returns where layer 3 begins.
  std::byte* start_frame(Packet& packet, const wire::MacAddress& destination,
                         std::uint16_t ether_type, std::uint8_t traffic_class) const;
  void finish_frame(Packet& packet, const std::byte* end) const;

  wire::MacAddress mac_;
  std::uint64_t mac_word_ = 0;
  std::uint16_t vlan_id_ = 0;  // 0: untagged
  std::array<std::uint8_t, kTrafficClasses> priority_of_class_;
  wire::DscpMap dscp_;
  std::uint8_t control_class_;
  HostRoutes routes_;
  NeighbourTable table_;
  bool answer_echo_;
  Picos echo_interval_;
  Picos echo_burst_;
  Picos echo_due_{0};  // when the bucket is full again
  std::uint32_t announcements_;
  std::uint32_t announcements_left_ = 0;
  Picos announce_interval_;
  Picos next_announcement_ = kNever;
  Picos defend_interval_;
  std::array<Picos, kMaxHostAddresses> may_defend_at_{};
  HostCounters counters_;
};

// Is this UDP to port 4791 for one of our addresses? Short, because every packet passes.
inline HostStack::Verdict HostStack::recognise(Packet& packet) {
  using namespace wire;
  const std::byte* const p = packet.header.data();
  if (packet.header_bytes < kEthernetBytes) {
    counters_.errors.record(HostError::too_short);
    return Verdict::refused;
  }
  const bool mine = load_be48(p) == mac_word_;
  if (!mine && (p[0] & std::byte{1}) == std::byte{0}) {
    ++counters_.other_mac;
    return Verdict::refused;
  }
  if (load_be16(p + 12) == kEtherTypeVlan || vlan_id_ != 0) {
    if (!take_tag(packet)) return Verdict::refused;
  }
  if (!mine) return Verdict::taken;
  const std::uint16_t type = load_be16(p + 12);
  constexpr std::size_t kIp = kEthernetBytes;
  if (type == kEtherTypeIpv4) {
    constexpr std::size_t kUdp = kIp + kIpv4Bytes;
    if (packet.header_bytes < kUdp + 4 || load_u8(p + kIp) != 0x45 ||
        load_u8(p + kIp + 9) != kIpProtocolUdp || load_be16(p + kUdp + 2) != kRoceUdpPort) {
      return Verdict::taken;
    }
    if (routes_.own_index(IpAddress::load_v4(p + kIp + 16)) != HostRoutes::kNotOwn) {
      return Verdict::engine;
    }
  } else if (type == kEtherTypeIpv6) {
    constexpr std::size_t kUdp = kIp + kIpv6Bytes;
    if (packet.header_bytes < kUdp + 4 || load_u8(p + kIp + 6) != kIpProtocolUdp ||
        load_be16(p + kUdp + 2) != kRoceUdpPort) {
      return Verdict::taken;
    }
    const IpAddress destination = IpAddress::load_v6(p + kIp + 24);
    if (!destination.is_v4() && routes_.own_index(destination) != HostRoutes::kNotOwn) {
      return Verdict::engine;
    }
  } else {
    return Verdict::taken;
  }
  ++counters_.other_address;
  return Verdict::refused;
}

}  // namespace paceline::neighbour
