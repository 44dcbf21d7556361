// The control messages of dataplane/base/protocol/control_messages.h on the wire: HELLO, REQUEST,
// GRANT and NOTICE, each in a packet of its own behind a base transport header addressed to the
// control queue pair. The byte layouts are in docs/wire-protocol.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/protocol/control_messages.h"
#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::wire {

inline constexpr std::size_t kHelloBytes = 32;
inline constexpr std::size_t kRequestBytes = 48;
inline constexpr std::size_t kGrantBytes = 40;
inline constexpr std::size_t kNoticeBytes = 12;
inline constexpr std::size_t kMaxControlBytes = 48;
// Even with a tag and IPv6 the longest message fits the header buffer.
static_assert(kEthernetBytes + kVlanBytes + kIpv6Bytes + kUdpBytes + kBthBytes + kMaxControlBytes <=
              kHeaderBufferBytes);

// Packets. `sequence` counts the control packets of a sender and is for captures only. Totals are
// written modulo 2^48; demand_bytes beyond 2^48 - 1 is written as that. traffic_class must be
// below 8.
std::size_t build_control(const HeaderTemplate& header, HeaderBuffer out, Psn sequence,
                          const HelloMessage& message);
std::size_t build_control(const HeaderTemplate& header, HeaderBuffer out, Psn sequence,
                          const RequestMessage& message);
std::size_t build_control(const HeaderTemplate& header, HeaderBuffer out, Psn sequence,
                          const GrantMessage& message);
std::size_t build_control(const HeaderTemplate& header, HeaderBuffer out, Psn sequence,
                          const NoticeMessage& message);

// Bodies (control_body of a parsed packet). Return ok and fill `out`, or give the reason:
// control_version, control_length or control_field. Reserved bits and bytes are ignored. A HELLO
// may be longer than ours: later versions append to it.
[[nodiscard]] ParseError parse_control(std::span<const std::byte> body, HelloMessage& out);
[[nodiscard]] ParseError parse_control(std::span<const std::byte> body, RequestMessage& out);
[[nodiscard]] ParseError parse_control(std::span<const std::byte> body, GrantMessage& out);
[[nodiscard]] ParseError parse_control(std::span<const std::byte> body, NoticeMessage& out);

// The highest version both sides speak; nothing when the ranges do not meet: the peer is then
// foreign.
std::optional<std::uint8_t> negotiate_version(const HelloMessage& theirs);

}  // namespace paceline::wire
