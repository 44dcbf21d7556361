// ICMP echo, IPv4 (RFC 792; RFC 1122, 3.2.2.6) and IPv6 (RFC 4443, 4.1 and 4.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/host/host_error.h"
#include "dataplane/wire/host/ip_header.h"

namespace paceline::wire {

inline constexpr std::size_t kEchoBytes = 8;  // type, code, checksum, identifier, sequence number

struct EchoMessage {
  bool reply = false;
  IpHeader ip;
  std::uint16_t identifier = 0;
  std::uint16_t sequence = 0;
  std::size_t data_bytes = 0;  // after the eight bytes
};

// `ip` starts at the IP header, `rest` continues it (Packet: header and payload). Verifies the
// checksum over both. Errors icmp_type, icmp_code: not an echo request or reply, or not code 0.
[[nodiscard]] HostError parse_echo(std::span<const std::byte> ip, std::span<const std::byte> rest,
                                   bool ipv6, EchoMessage& out);

// Turns the request at `ip`, as parsed, into its reply: addresses swapped, hop limit 64, type of
// service kept, data untouched wherever it lies.
void make_echo_reply(std::span<std::byte> ip, const EchoMessage& request);

// Writes IP header and echo message without their data; the checksum covers `data`, which follows
// them. Takes addresses, tos, ttl and family from message.ip. Returns the bytes written.
std::size_t store_echo(std::byte* out, const EchoMessage& message, std::span<const std::byte> data);

}  // namespace paceline::wire
