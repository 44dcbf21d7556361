// Network configuration of a host: addresses, gateways, tag, and timers for neighbours. Typed
// values; a reader of configuration files fills them in and calls `problems`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/headers/dscp.h"

namespace paceline::neighbour {

constexpr Picos seconds(std::int64_t s) { return picos_from_micros(s * 1'000'000); }

// Constants of neighbour unreachability detection, for ARP and IPv6 alike. The first five are those
// of RFC 4861, section 10 (MAX_MULTICAST_SOLICIT, MAX_UNICAST_SOLICIT, RETRANS_TIMER,
// REACHABLE_TIME, DELAY_FIRST_PROBE_TIME).
struct NeighbourTiming {
  std::uint32_t multicast_solicits = 3;  // broadcast requests for ARP
  std::uint32_t unicast_solicits = 3;
  Picos retransmit = seconds(1);
  // The base; each confirmation draws from 0.5 to 1.5 times of it (RFC 4861, 6.3.2).
  Picos reachable = seconds(30);
  Picos delay_first_probe = seconds(5);
  // How long a neighbour that did not answer is not asked again. RFC 1122, 2.3.2.1: at most one
  // request per second and destination.
  Picos failed_hold = seconds(1);
  // When an entry that was not used, or that was heard but never used, is forgotten.
  Picos stale_lifetime = seconds(600);
  Picos heard_lifetime = seconds(60);
  // A full table may forget a stale neighbour that we have not sent to for this long.
  Picos evict_idle = seconds(60);
};

struct NeighbourLimits {
  std::uint32_t capacity = 1024;            // neighbours, 8 .. 65,536
  std::uint32_t heard_capacity = 256;       // of these, neighbours that we never sent to
  std::uint32_t parked_per_neighbour = 16;  // packets that wait for one unresolved neighbour
  std::uint32_t parked = 256;               // for all of them
};

struct HostAddress {
  wire::IpAddress address;
  std::uint8_t prefix_bits = 24;  // prefix of the link: 0..32 or 0..128
};

struct FixedNeighbour {
  wire::IpAddress address;
  wire::MacAddress mac;
};

inline constexpr std::size_t kMaxHostAddresses = 8;

struct HostConfig {
  wire::MacAddress mac;
  std::vector<HostAddress> addresses;  // 1 .. kMaxHostAddresses
  std::optional<wire::IpAddress> gateway_v4;
  std::optional<wire::IpAddress> gateway_v6;
  std::vector<FixedNeighbour> fixed;     // never asked, never changed by what is heard
  std::optional<std::uint16_t> vlan_id;  // 802.1Q, 1..4094; none: untagged
  std::array<std::uint8_t, kTrafficClasses> priority_of_class{0, 1, 2, 3, 4, 5, 6, 7};
  wire::DscpMap dscp = wire::kDefaultDscpMap;  // class in which an echo is answered
  std::uint32_t ip_mtu = 4200;  // largest IP datagram, 1280 .. 9216: longer ones are not sent
  // ARP and neighbour messages travel in this class.
  std::uint8_t control_class = kControlClass;
  bool answer_echo = true;
  std::uint32_t echo_per_second = 1000;  // answers, with a burst of as many; more are dropped
  std::uint32_t announcements = 2;       // of the own addresses at start: RFC 5227, ANNOUNCE_NUM
  Picos announce_interval = seconds(2);  // RFC 5227, ANNOUNCE_INTERVAL
  Picos defend_interval = seconds(10);   // RFC 5227, DEFEND_INTERVAL
  NeighbourTiming timing{};
  NeighbourLimits limits{};
};

// All problems of the config, each with the field, the value and what is allowed; empty if it can
// be used.
std::vector<std::string> problems(const HostConfig& config);

// The largest RoCE path MTU (256, 512 .. 4096) whose packets fit an IP datagram of `ip_mtu` bytes
// whatever the family; 0 when none does. Headers in front of a payload: IPv6 40, UDP 8, BTH 12,
// RETH 16 and immediate 4; the ICRC's 4 behind.
std::uint16_t path_mtu_of(std::uint32_t ip_mtu);

}  // namespace paceline::neighbour
