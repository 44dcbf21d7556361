#include "dataplane/wire/extensions/control.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>

namespace paceline::wire {
namespace {

// The format of HELLO never changes in its first 32 bytes: it is how versions are negotiated, so it
// must be readable across all of them.
constexpr std::uint8_t kHelloFormat = 1;

constexpr unsigned kFlagReply = 0x01;      // HELLO
constexpr unsigned kFlagClose = 0x01;      // REQUEST
constexpr unsigned kFlagHint = 0x02;       // REQUEST
constexpr unsigned kFlagCongested = 0x04;  // REQUEST
constexpr unsigned kFlagLost = 0x08;       // REQUEST
constexpr unsigned kFlagHold = 0x01;       // GRANT
constexpr unsigned kFlagRevoke = 0x02;     // GRANT
constexpr unsigned kFlagCredit = 0x04;     // GRANT
constexpr unsigned kPeerCountShift = 3;    // HELLO, GRANT: the upper bits of the flags

unsigned peer_count_flags(std::uint8_t peer_count_hint) {
  assert(peer_count_hint < 1U << kPeerCountBits);
  return unsigned{peer_count_hint} << kPeerCountShift;
}

bool is_echo(std::uint8_t value) { return value <= static_cast<std::uint8_t>(EcnEcho::xack); }
bool is_class(std::uint8_t value) { return value < kTrafficClasses; }

// The first four bytes of every message.
void store_prefix(std::byte* p, std::uint8_t version, unsigned flags, std::uint8_t traffic_class,
                  std::uint8_t fourth) {
  assert(is_class(traffic_class));
  store_u8(p, version);
  store_u8(p + 1, static_cast<std::uint8_t>(flags));
  store_u8(p + 2, traffic_class);
  store_u8(p + 3, fourth);
}

// Version, then length, then class: what all but HELLO share.
ParseError check_prefix(std::span<const std::byte> body, std::size_t bytes) {
  if (body.empty()) return ParseError::control_length;
  if (load_u8(body.data()) != kControlProtocolVersion) return ParseError::control_version;
  if (body.size() != bytes) return ParseError::control_length;
  return is_class(load_u8(body.data() + 2)) ? ParseError::ok : ParseError::control_field;
}

std::uint16_t notice_units(std::int32_t bytes) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int16_t>::max();
  return static_cast<std::uint16_t>(std::clamp(bytes / kNoticeUnit, -kMost, kMost));
}
std::int32_t notice_bytes(std::uint16_t units) {
  return static_cast<std::int16_t>(units) * kNoticeUnit;
}

}  // namespace

std::size_t build_control(const HeaderTemplate& header, HeaderBuffer out, Psn sequence,
                          const HelloMessage& m) {
  const std::size_t at = build_control_prefix(header, out, Opcode::hello, sequence, kHelloBytes);
  std::byte* const p = out.data() + at;
  store_prefix(p, kHelloFormat, (m.reply ? kFlagReply : 0U) | peer_count_flags(m.peer_count_hint),
               m.traffic_class, static_cast<std::uint8_t>(m.echo_wanted));
  store_u8(p + 4, m.version_min);
  store_u8(p + 5, m.version_max);
  store_be16(p + 6, m.mtu_bytes);
  store_be32(p + 8, m.features);
  store_be32(p + 12, m.link_mbps);
  store_be64(p + 16, m.timestamp_ns);
  store_be64(p + 24, m.timestamp_echo_ns);
  return at + kHelloBytes;
}

std::size_t build_control(const HeaderTemplate& header, HeaderBuffer out, Psn sequence,
                          const RequestMessage& m) {
  const std::size_t at =
      build_control_prefix(header, out, Opcode::request, sequence, kRequestBytes);
  std::byte* const p = out.data() + at;
  const unsigned flags = (m.close ? kFlagClose : 0U) | (m.hint ? kFlagHint : 0U) |
                         (m.congested ? kFlagCongested : 0U) | (m.lost ? kFlagLost : 0U);
  store_prefix(p, kControlProtocolVersion, flags, m.traffic_class,
               static_cast<std::uint8_t>(m.echo_wanted));
  store_u8(p + 4, m.arm);
  store_u8(p + 5, m.epoch);
  store_be16(p + 6, m.channel);
  store_be16(p + 8, m.req_seq);
  store_be16(p + 10, m.grant_echo);
  store_be32(p + 12, m.tx_cap_mbps);
  store_be48(p + 16, m.sent_total);
  store_be48(p + 22, m.unscheduled_total);
  // Not a cumulative total: wrapping it would turn the largest demand into the smallest.
  store_be48(p + 28, std::min(m.demand_bytes, kTotalMask));
  store_be16(p + 34, m.hint_degree);
  store_be32(p + 36, m.timestamp_ns);
  store_be16(p + 40, m.hint_kind);
  store_u8(p + 42, 0);
  store_u8(p + 43, m.round);
  store_be32(p + 44, m.hint_collective);
  return at + kRequestBytes;
}

std::size_t build_control(const HeaderTemplate& header, HeaderBuffer out, Psn sequence,
                          const GrantMessage& m) {
  const std::size_t at = build_control_prefix(header, out, Opcode::grant, sequence, kGrantBytes);
  std::byte* const p = out.data() + at;
  const unsigned flags = (m.hold ? kFlagHold : 0U) | (m.revoke ? kFlagRevoke : 0U) |
                         (m.credit ? kFlagCredit : 0U) | peer_count_flags(m.peer_count_hint);
  store_prefix(p, kControlProtocolVersion, flags, m.traffic_class, m.queue_us);
  store_be16(p + 4, m.channel);
  store_be16(p + 6, m.grant_seq);
  store_be32(p + 8, m.rate_mbps);
  store_be32(p + 12, m.lease_us);
  store_be48(p + 16, m.limit_total);
  const unsigned active = std::min(m.active_senders, kMostActiveSenders);
  store_be16(p + 22,
             static_cast<std::uint16_t>(unsigned{m.priority} << kActiveSenderBits | active));
  store_be32(p + 24, m.effective_delay_us);
  store_be32(p + 28, m.unscheduled_budget);
  store_be32(p + 32, m.timestamp_echo_ns);
  store_be32(p + 36, m.receiver_hold_ns);
  return at + kGrantBytes;
}

std::size_t build_control(const HeaderTemplate& header, HeaderBuffer out, Psn sequence,
                          const NoticeMessage& m) {
  assert(m.feedback != 0 && m.feedback <= kMostFeedback);
  const std::size_t at = build_control_prefix(header, out, Opcode::notice, sequence, kNoticeBytes);
  std::byte* const p = out.data() + at;
  store_prefix(p, kControlProtocolVersion, m.feedback, m.traffic_class, 0);
  store_be32(p + 4, m.dest_qpn);
  store_be16(p + 8, notice_units(m.excess_bytes));
  store_be16(p + 10, notice_units(m.growth_bytes));
  return at + kNoticeBytes;
}

ParseError parse_control(std::span<const std::byte> body, HelloMessage& out) {
  if (body.empty()) return ParseError::control_length;
  const std::byte* const p = body.data();
  if (load_u8(p) != kHelloFormat) return ParseError::control_version;
  if (body.size() < kHelloBytes) return ParseError::control_length;
  const std::uint8_t traffic_class = load_u8(p + 2);
  const std::uint8_t echo = load_u8(p + 3);
  const std::uint8_t version_min = load_u8(p + 4);
  const std::uint8_t version_max = load_u8(p + 5);
  if (!is_class(traffic_class) || !is_echo(echo)) return ParseError::control_field;
  if (version_min == 0 || version_min > version_max) return ParseError::control_field;
  out.version_min = version_min;
  out.version_max = version_max;
  out.reply = (load_u8(p + 1) & kFlagReply) != 0;
  out.peer_count_hint = static_cast<std::uint8_t>(load_u8(p + 1) >> kPeerCountShift);
  out.traffic_class = traffic_class;
  out.features = load_be32(p + 8);
  out.link_mbps = load_be32(p + 12);
  out.mtu_bytes = load_be16(p + 6);
  out.echo_wanted = static_cast<EcnEcho>(echo);
  out.timestamp_ns = load_be64(p + 16);
  out.timestamp_echo_ns = load_be64(p + 24);
  return ParseError::ok;
}

ParseError parse_control(std::span<const std::byte> body, RequestMessage& out) {
  if (const auto e = check_prefix(body, kRequestBytes); e != ParseError::ok) return e;
  const std::byte* const p = body.data();
  const std::uint8_t flags = load_u8(p + 1);
  const std::uint8_t echo = load_u8(p + 3);
  if (!is_echo(echo) || load_u8(p + 42) != 0) return ParseError::control_field;
  out.close = (flags & kFlagClose) != 0;
  out.hint = (flags & kFlagHint) != 0;
  out.congested = (flags & kFlagCongested) != 0;
  out.lost = (flags & kFlagLost) != 0;
  out.traffic_class = load_u8(p + 2);
  out.echo_wanted = static_cast<EcnEcho>(echo);
  out.arm = load_u8(p + 4);
  out.epoch = load_u8(p + 5);
  out.channel = load_be16(p + 6);
  out.req_seq = load_be16(p + 8);
  out.grant_echo = load_be16(p + 10);
  out.tx_cap_mbps = load_be32(p + 12);
  out.sent_total = load_be48(p + 16);
  out.unscheduled_total = load_be48(p + 22);
  out.demand_bytes = load_be48(p + 28);
  out.hint_degree = load_be16(p + 34);
  out.timestamp_ns = load_be32(p + 36);
  out.hint_kind = load_be16(p + 40);
  out.round = load_u8(p + 43);
  out.hint_collective = load_be32(p + 44);
  return ParseError::ok;
}

ParseError parse_control(std::span<const std::byte> body, GrantMessage& out) {
  if (const auto e = check_prefix(body, kGrantBytes); e != ParseError::ok) return e;
  const std::byte* const p = body.data();
  const std::uint8_t flags = load_u8(p + 1);
  out.hold = (flags & kFlagHold) != 0;
  out.revoke = (flags & kFlagRevoke) != 0;
  out.credit = (flags & kFlagCredit) != 0;
  out.peer_count_hint = static_cast<std::uint8_t>(flags >> kPeerCountShift);
  out.traffic_class = load_u8(p + 2);
  out.queue_us = load_u8(p + 3);
  out.channel = load_be16(p + 4);
  out.grant_seq = load_be16(p + 6);
  out.rate_mbps = load_be32(p + 8);
  out.lease_us = load_be32(p + 12);
  out.limit_total = load_be48(p + 16);
  const std::uint16_t senders = load_be16(p + 22);
  out.active_senders = senders & kMostActiveSenders;
  out.priority = static_cast<std::uint8_t>(senders >> kActiveSenderBits);
  out.effective_delay_us = load_be32(p + 24);
  out.unscheduled_budget = load_be32(p + 28);
  out.timestamp_echo_ns = load_be32(p + 32);
  out.receiver_hold_ns = load_be32(p + 36);
  return ParseError::ok;
}

ParseError parse_control(std::span<const std::byte> body, NoticeMessage& out) {
  if (const auto e = check_prefix(body, kNoticeBytes); e != ParseError::ok) return e;
  const std::byte* const p = body.data();
  const std::uint8_t feedback = load_u8(p + 1);
  const std::uint32_t dest_qpn = load_be32(p + 4);
  if (feedback == 0 || feedback > kMostFeedback || dest_qpn > kMaxQpn) {
    return ParseError::control_field;
  }
  out.feedback = feedback;
  out.traffic_class = load_u8(p + 2);
  out.dest_qpn = dest_qpn;
  out.excess_bytes = notice_bytes(load_be16(p + 8));
  out.growth_bytes = notice_bytes(load_be16(p + 10));
  return ParseError::ok;
}

std::optional<std::uint8_t> negotiate_version(const HelloMessage& theirs) {
  // We speak exactly one version; a range is kept so that the next one is a change of this line.
  constexpr std::uint8_t kOurMin = kControlProtocolVersion;
  constexpr std::uint8_t kOurMax = kControlProtocolVersion;
  const std::uint8_t highest = std::min(kOurMax, theirs.version_max);
  if (highest < std::max(kOurMin, theirs.version_min)) return std::nullopt;
  return highest;
}

}  // namespace paceline::wire
