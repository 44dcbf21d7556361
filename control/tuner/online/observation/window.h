// Input of the tuner: the figures of one NIC instance (or of a testbed that is tuned as one) over a
// short span of time, 10 ms from the daemon, and their sums. All figures are differences of two
// samples of telemetry; nothing here is cumulative.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "dataplane/telemetry/counters.h"
#include "dataplane/telemetry/message_figures.h"

namespace paceline::tuner::online {

struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  // > begin_ns
  // False: it is unknown what happened (telemetry was lost, or is stale). The figures are ignored.
  bool fresh = true;
  // Order::number of the parameters that were in force during the whole window; 0: before the first
  // order. For a window in which they changed, the older number.
  std::uint64_t order = 0;

  telemetry::MessagesBySize messages{};
  std::uint64_t line_bps = 0;       // of the NIC
  std::uint64_t tx_bytes = 0;       // payload, first transmissions
  std::uint64_t rx_bytes = 0;       // payload, accepted
  std::uint64_t tx_packets = 0;     // data
  std::uint64_t rx_packets = 0;     // data
  std::uint64_t ce_packets = 0;     // data that arrived marked
  std::uint64_t cnps_received = 0;  //
  std::uint64_t retransmitted = 0;  // packets
  std::uint64_t dropped = 0;        // packets, where drops can be counted
  std::uint64_t paused_ns = 0;      // of the NIC's link, all classes
  std::uint32_t senders = 0;        // that the receiving side had at the same time; a look
  // Cycles that workers worked, and the packets that these went to; 0: not known.
  std::uint64_t cycles = 0;
  std::uint64_t cycle_packets = 0;
  // The p99 of what a packet waits: of the time over the shortest seen, or of the last hop's queue
  // (there it is known in emulation only). Negative: not measured.
  double delay_p99_ns = -1;
  double queue_p99_bytes = -1;
  double jain = -1;        // fairness between channels that are alike, 0..1; negative: not measured
  double cpu_share = -1;   // of the worker's core; negative: not measured
  double phase_ratio = 0;  // p99 collective phase time over ideal; 0: not known
  std::array<std::uint64_t, telemetry::kLimiterKinds> limiter_ns{};
};

// Adds the figures of `from` (fresh, later) to `into`: counts are summed, levels are the worse of
// the two, the core's share is that of both together. `into` may be empty (end_ns = 0).
void add(Window& into, const Window& from);

inline double span_ns(const Window& w) { return static_cast<double>(w.end_ns - w.begin_ns); }

// The slowdown that a share `q` (0..1) of the completed messages does not exceed, from the buckets,
// even within each on the scale of logarithms; nothing where none was completed.
std::optional<double> slowdown_quantile(const telemetry::MessageFigures& figures, double q);

}  // namespace paceline::tuner::online
