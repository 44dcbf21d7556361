// Changes of ECN and DSCP in headers already written. Each keeps the IPv4 checksum right by RFC
// 1624 and costs a few loads; none re-reads the packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/protocol/ecn.h"

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

}  // namespace paceline::wire
