// Why a frame that is not RoCEv2 (ARP, neighbour discovery, ICMP) was refused: as parse_error.h for
// what a host answers itself. Every refusal has a reason, every reason is counted; the names are
// what telemetry shows, so they do not change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paceline::wire {

enum class HostError : std::uint8_t {
  ok = 0,
  too_short,      // ends inside a header
  too_long,       // a neighbour message that does not fit the header buffer
  corrupt,        // flagged by the fabric as hit by a bit error
  vlan_too_deep,  // a service tag, or more than one customer tag
  ether_type,     // neither ARP nor IPv4 nor IPv6
  arp_format,     // not Ethernet and IPv4, or lengths other than 6 and 4
  arp_operation,  // neither request nor reply
  arp_sender,     // a sender that cannot be one host: multicast, broadcast, loopback, all zero
  ip_version,     // EtherType and IP version disagree
  ip_options,     // IPv4 options or an IPv6 extension header: not accepted
  ip_length,      // IP length disagrees with what is there
  ip_checksum,    // IPv4 header checksum
  ip_source,      // a source that cannot be answered: multicast, broadcast, mapped, unspecified
  fragment,       // IPv4 or IPv6 fragment
  protocol,       // neither ICMP nor RoCEv2
  icmp_checksum,  // of the message, with the pseudo-header for IPv6
  icmp_type,      // a type that a host of this kind does not act upon
  icmp_code,      // echo or neighbour message with a code other than 0
  nd_hop_limit,   // a neighbour message that may have passed a router: hop limit below 255
  nd_address,     // target multicast, or source and destination not as RFC 4861 7.1 has them
  nd_option,      // an option of length 0, that overruns, or a link-layer address not of 8 bytes
};
inline constexpr std::size_t kHostErrors = 22;

// "arp_format": the enumerator's name.
std::string_view host_error_name(HostError error);

// One counter per reason, `ok` included; not thread-safe, one owner.
struct HostErrorCounters {
  std::array<std::uint64_t, kHostErrors> count{};

  void record(HostError error) { ++count[static_cast<std::size_t>(error)]; }
  std::uint64_t of(HostError error) const { return count[static_cast<std::size_t>(error)]; }
  std::uint64_t refused() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 1; i < kHostErrors; ++i) sum += count[i];
    return sum;
  }
};

}  // namespace paceline::wire
