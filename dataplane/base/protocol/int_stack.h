// In-band telemetry: what switches say about the links by which a packet left them, as the sender
// of the packet gets it back. Plain values; dataplane/wire/extensions/int_record.h lays them out in
// bytes.
#pragma once

#include <array>
#include <cstdint>

namespace paceline {

// The most switches that a packet has room for: a fat tree of three tiers has five on a path (HPCC,
// SIGCOMM 2019, section 4.1, has the same limit).
inline constexpr std::uint32_t kIntHops = 5;

// Counters wrap; differences are meant.
inline constexpr std::uint32_t kIntTimeWrap = 1U << 24;  // ns
inline constexpr std::uint32_t kIntSentWrap = 1U << 30;  // bytes

// One link, when the packet began to leave by it.
struct IntHop {
  std::uint32_t rate_mbps = 0;    // of the link; 1 at least
  std::uint32_t queue_bytes = 0;  // that stay behind, all classes; in steps of 16, up to 2^28 - 16
  std::uint32_t sent_bytes = 0;   // by this link before, modulo kIntSentWrap; in steps of 64
  std::uint32_t time_ns = 0;      // modulo kIntTimeWrap
  friend bool operator==(const IntHop&, const IntHop&) = default;
};

struct IntStack {
  std::uint16_t hops = 0;  // at most kIntHops; in the order of the path
  std::uint16_t path = 0;  // below 2^13; another one: other links
  std::array<IntHop, kIntHops> hop{};
  friend bool operator==(const IntStack&, const IntStack&) = default;
};

}  // namespace paceline
