// Why a packet was refused. Every refusal has a reason, every reason is counted; the names are what
// telemetry shows, so they do not change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paceline::wire {

enum class ParseError : std::uint8_t {
  ok = 0,
  too_short,            // ends inside Ethernet, IP, UDP or the base transport header
  vlan_too_deep,        // a service tag, or more than one customer tag
  not_ip,               // EtherType other than IPv4 and IPv6
  ip_version,           // EtherType and IP version disagree
  ip_options,           // IPv4 options or an IPv6 extension header: not accepted
  mapped_address,       // IPv6 with an IPv4-mapped address, which could pass for the IPv4 one
  ip_length,            // IP length disagrees with what is there
  ip_checksum,          // IPv4 header checksum
  fragment,             // IPv4 or IPv6 fragment
  not_udp,              // IP protocol other than UDP
  udp_port,             // UDP destination port other than 4791
  udp_length,           // UDP length disagrees with the IP length
  transport_version,    // BTH version other than 0
  unknown_opcode,       // not in the opcode table
  truncated_extension,  // ends inside an extension header
  bad_pad,              // pad count and payload length disagree
  unexpected_payload,   // payload on a packet that carries none
  header_length,        // headers given separately go on beyond the extension headers
  bad_aeth,             // reserved syndrome, or a negative one where none may be
  bad_icrc,             // invariant CRC
  corrupt,              // flagged by the fabric as hit by a bit error (no ICRC in virtual time)
  control_destination,  // control message not addressed to the control queue pair, or vice versa
  control_version,      // control message of a version we do not speak
  control_length,       // control message longer or shorter than its version says
  control_field,        // control message with a field out of range
};
inline constexpr std::size_t kParseErrors = 26;

// "udp_port": the enumerator's name.
std::string_view parse_error_name(ParseError error);

// One counter per reason, `ok` included; not thread-safe, one owner.
struct ParseCounters {
  std::array<std::uint64_t, kParseErrors> count{};

  void record(ParseError error) { ++count[static_cast<std::size_t>(error)]; }
  std::uint64_t of(ParseError error) const { return count[static_cast<std::size_t>(error)]; }
  std::uint64_t refused() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 1; i < kParseErrors; ++i) sum += count[i];
    return sum;
  }
};

}  // namespace paceline::wire
