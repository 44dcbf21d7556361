// Address resolution for IPv4 over Ethernet (RFC 826; probes and announcements: RFC 5227).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/host/host_error.h"

namespace paceline::wire {

inline constexpr std::size_t kArpBytes = 28;  // behind the Ethernet header

enum class ArpOperation : std::uint16_t { request = 1, reply = 2 };

struct ArpMessage {
  ArpOperation operation = ArpOperation::request;
  MacAddress sender_mac;
  IpAddress sender;  // IPv4; 0.0.0.0 in a probe
  MacAddress target_mac;
  IpAddress target;

  // Somebody asks whether an address is free (RFC 5227, 1.1).
  bool is_probe() const { return operation == ArpOperation::request && sender.v4_value() == 0; }
  // An announcement, also known as gratuitous ARP: sender and target are the same.
  bool is_announcement() const { return sender == target; }
  friend bool operator==(const ArpMessage&, const ArpMessage&) = default;
};

// `arp` starts behind the Ethernet header; what follows the 28 bytes is padding and not looked at.
// Refused: another hardware or protocol, other operations, and senders no host can be (a group
// address; an IPv4 address that is multicast, loopback or reserved; a reply from 0.0.0.0).
[[nodiscard]] HostError parse_arp(std::span<const std::byte> arp, ArpMessage& out);

// Writes kArpBytes.
void store_arp(std::byte* out, const ArpMessage& message);

}  // namespace paceline::wire
