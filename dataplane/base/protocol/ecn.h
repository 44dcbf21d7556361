// Explicit congestion notification: the two low bits of the IPv4 type-of-service and the IPv6
// traffic class byte (RFC 3168, section 5). Senders use ECT(1) where switches notify them, to ask
// for that (docs/wire-protocol.md).
#pragma once

#include <cstdint>

namespace paceline {

enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

}  // namespace paceline
