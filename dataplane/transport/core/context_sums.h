// Sums over the congestion contexts of an engine, for telemetry.
#pragma once

#include <array>
#include <cstdint>

#include "cc/interface/decision.h"
#include "dataplane/telemetry/cluster_figures.h"

namespace paceline::transport {

struct ContextSums {
  // Time in force of each limiter, including contexts that are gone.
  std::array<std::int64_t, cc::kLimiters> limiter_picos{};
  std::uint64_t inflight_bytes = 0;  // on the wire
  std::uint64_t backlog_bytes = 0;   // payload posted and not sent
  std::uint32_t contexts = 0;        // in use
  std::uint32_t on_fallback = 0;     // contexts among these whose fallback algorithm decides
  // If peers are in clusters: queue pairs that lead to each, and a sum that changes with every
  // packet that is sent there or acknowledged there.
  std::array<std::uint32_t, telemetry::kMostClusters> queue_pairs_to{};
  std::array<std::uint64_t, telemetry::kMostClusters> moved_to{};
};

}  // namespace paceline::transport
