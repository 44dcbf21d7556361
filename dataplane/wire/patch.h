// Changes to headers already written, by those who forward: switches mark ECN, an endpoint sets
// BECN or moves a retransmission to another path. Each keeps every checksum right by RFC 1624 and
// costs a few loads; none re-reads the packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/ecn.h"

namespace paceline::wire {

// `headers` starts at Ethernet. Each returns false, and changes nothing, if the bytes do not hold
// the header it needs (not IP, too short, more than one tag).

// Rewrites the ECN code point. Neither the ICRC nor a UDP checksum covers it. Whether marking is
// allowed (never turn not_ect into ce) is the caller's rule: see mark_ce.
bool patch_ecn(std::span<std::byte> headers, Ecn ecn);

// Sets CE if the packet is ECN-capable; false if it is not, and the caller may drop it instead
// (RFC 3168, 5).
bool mark_ce(std::span<std::byte> headers);

// The code point, or nothing when this is not an IP packet.
std::optional<Ecn> read_ecn(std::span<const std::byte> headers);

// Rewrites the code point of the traffic class (0 to 63) and leaves ECN alone. The ICRC masks it.
bool patch_dscp(std::span<std::byte> headers, std::uint8_t dscp);

// BECN of the base transport header at `bth_offset`. The ICRC masks that byte.
bool patch_becn(std::span<std::byte> headers, std::size_t bth_offset, bool becn);

// The ICRC covers the UDP source port: compute it afterwards, or again. A UDP checksum that is not
// zero is brought up to date.
bool patch_udp_source_port(std::span<std::byte> headers, std::uint16_t port);

}  // namespace paceline::wire
