// The proactive control messages as plain values, in host order. `wire` lays them out in packets of
// the manufacturer-specific opcode range; `cc` produces and consumes them; `transport` carries
// them. Totals are cumulative byte counts modulo 2^48, so that loss or repetition of a message can
// neither drift nor mis-charge. Rates travel as whole Mb/s.
#pragma once

#include <bit>
#include <cstdint>

namespace paceline {

inline constexpr std::uint8_t kControlProtocolVersion = 1;
inline constexpr std::uint64_t kTotalMask = (std::uint64_t{1} << 48) - 1;

// Extends a 48-bit cumulative total to 64 bits: the value nearest to `reference`.
constexpr std::uint64_t extend_total(std::uint64_t reference, std::uint64_t wire48) {
  const std::uint64_t delta = (wire48 - reference) & kTotalMask;
  const bool negative = (delta >> 47) != 0;
  const std::uint64_t extended = reference + delta - (negative ? kTotalMask + 1 : 0);
  return (negative && reference + delta < kTotalMask + 1) ? 0 : extended;
}

// How congestion marks get back to the sender of the data.
enum class EcnEcho : std::uint8_t { none = 0, cnp = 1, xack = 2 };

// How many peers have connections to a port, in 5 bits: 0 = not said, else 1 + the binary logarithm
// of the number, rounded up.
inline constexpr unsigned kPeerCountBits = 5;
constexpr std::uint8_t peer_count_hint_of(std::uint32_t peers) {
  if (peers == 0) return 0;
  const auto bits = static_cast<std::uint32_t>(std::bit_width(peers - 1)) + 1;
  constexpr std::uint32_t kMost = (1U << kPeerCountBits) - 1;
  return static_cast<std::uint8_t>(bits < kMost ? bits : kMost);
}
// The most that it can mean; 0 where nothing was said.
constexpr std::uint32_t peers_of(std::uint8_t peer_count_hint) {
  return peer_count_hint == 0 ? 0 : std::uint32_t{1} << (peer_count_hint - 1);
}

// "Who are you?": once per peer address and class, three tries; any answer shows that the peer
// speaks it.
struct HelloMessage {
  std::uint8_t version_min = kControlProtocolVersion;
  std::uint8_t version_max = kControlProtocolVersion;
  bool reply = false;  // set in the answer
  std::uint8_t traffic_class = 0;
  std::uint32_t features = 0;  // bit 0: grants; bit 1: XACK; 2: multipath; 3: telemetry
  std::uint32_t link_mbps = 0;
  std::uint16_t mtu_bytes = 0;  // path MTU offered
  EcnEcho echo_wanted = EcnEcho::cnp;
  std::uint8_t peer_count_hint = 0;     // peers connected to the sender of this: peer_count_hint_of
  std::uint64_t timestamp_ns = 0;       // sender's clock, for offset estimation
  std::uint64_t timestamp_echo_ns = 0;  // in a reply: the timestamp answered
};
inline constexpr std::uint32_t kFeatureGrants = 1U << 0;
inline constexpr std::uint32_t kFeatureXack = 1U << 1;
inline constexpr std::uint32_t kFeatureMultipath = 1U << 2;
inline constexpr std::uint32_t kFeatureTelemetry = 1U << 3;

// Sender -> receiver, per channel (source port, destination port, class).
struct RequestMessage {
  bool close = false;  // the context leaves; the receiver forgets the channel
  bool hint = false;   // the hint fields are valid
  // More was granted to the sender than it can use, by all receivers together (SIRD's csn).
  bool congested = false;
  bool lost = false;  // data was lost: bytes in flight count as arrived
  std::uint8_t traffic_class = 0;
  EcnEcho echo_wanted = EcnEcho::cnp;
  std::uint8_t arm = 0;  // experiment arm
  std::uint8_t epoch = 0;
  std::uint16_t channel = 0;  // sender's channel number, stable for the channel's life
  // How often the sender has dropped the ceiling that it had (algorithms that grant bytes).
  std::uint8_t round = 0;
  std::uint16_t req_seq = 0;
  std::uint16_t grant_echo = 0;  // grant_seq of the newest grant in force at the sender
  std::uint64_t sent_total = 0;  // all bytes charged to the ceiling, retransmissions included
  std::uint64_t unscheduled_total = 0;  // of these, bytes announced as sent without a grant
  std::uint64_t demand_bytes = 0;       // backlog: posted and not yet sent (wire: 48 bits)
  std::uint32_t tx_cap_mbps = 0;        // what the sender could use; 0xFFFFFFFF = no limit
  std::uint32_t timestamp_ns = 0;       // sender's clock, wraps
  std::uint16_t hint_degree = 0;        // peers of the collective (n - 1)
  std::uint16_t hint_kind = 0;          // 0 none, 1 ring, 2 all-to-all, 3 p2p, 4 bulk
  std::uint32_t hint_collective = 0;    // collective id
};

// Priorities in the network (Homa): levels 0, the lowest, to 6. In a GRANT 0 stands for "not said",
// else 1 + the level, in 3 bits above the number of active senders.
inline constexpr unsigned kPriorityBits = 3;
inline constexpr unsigned kActiveSenderBits = 16 - kPriorityBits;
inline constexpr std::uint16_t kMostActiveSenders = (1U << kActiveSenderBits) - 1;

// Receiver -> sender: an absolute rate with a lease, and a cumulative byte ceiling.
struct GrantMessage {
  bool hold = false;    // rate 0 on purpose: wait for rotation
  bool revoke = false;  // channel forgotten by the receiver: start over
  bool credit = false;  // the ceiling is credit, to be used at any rate; rate and lease only inform
  std::uint8_t traffic_class = 0;
  std::uint8_t peer_count_hint = 0;  // peers connected to the receiver: peer_count_hint_of
  // How long, at least, data that arrives now waits at the receiver's port.
  std::uint8_t queue_us = 0;
  std::uint16_t channel = 0;  // the sender's channel number, echoed
  std::uint16_t grant_seq = 0;
  std::uint32_t rate_mbps = 0;
  std::uint64_t limit_total = 0;  // ceiling for the sender's sent_total
  std::uint32_t lease_us = 0;
  std::uint32_t effective_delay_us = 0;  // a change takes effect only after this
  std::uint32_t unscheduled_budget = 0;  // U_adv: bytes a fresh message may send ungranted
  std::uint16_t active_senders = 0;      // kMostActiveSenders: that or more
  std::uint8_t priority = 0;  // of the granted data, plus 1; 0: not given. Below 1 << kPriorityBits
  std::uint32_t timestamp_echo_ns = 0;  // RequestMessage::timestamp_ns answered
  std::uint32_t receiver_hold_ns = 0;   // time between that request and this grant
};

// Switch -> sender of a packet that it has sampled in a queue (QCN's congestion notification).
inline constexpr std::uint8_t kMostFeedback = 63;
struct NoticeMessage {
  std::uint8_t feedback = 0;       // 1 to kMostFeedback
  std::uint8_t traffic_class = 0;  // of the sampled packet, as is:
  std::uint32_t dest_qpn = 0;
  // The queue beyond its set point, and its growth since the last sample; bytes, in steps of
  // kNoticeUnit, as far as 16 bits go.
  std::int32_t excess_bytes = 0;
  std::int32_t growth_bytes = 0;
};
inline constexpr std::int32_t kNoticeUnit = 64;

}  // namespace paceline
