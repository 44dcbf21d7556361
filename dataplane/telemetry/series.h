// The series that a segment has of every NIC: one table with name, unit, kind and meaning, which
// lays the segment out and from which docs/telemetry.md is made. First the counters of the engine
// in their order, then what NicSeries names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dataplane/telemetry/counters.h"
#include "dataplane/telemetry/segment.h"

namespace paceline::telemetry {

struct Series {
  std::string_view name;
  std::string_view unit;
  SeriesKind kind = SeriesKind::counter;
  std::string_view meaning;  // one line for the reference
};

// Series that are not counters of the engine, in the order of the table.
enum class NicSeries : std::uint8_t {
  malformed,
  limited_application_ns,  // and the other cc::Limiter in their order
  limited_grant_ns,
  limited_uplink_ns,
  limited_path_ns,
  limited_window_ns,
  limited_credit_ns,
  limited_port_ns,
  inflight_bytes,
  backlog_bytes,
  queue_pairs,
  contexts,
  contexts_on_fallback,
  sessions,
  last_hop_queue_bytes,
  last_hop_queue_max_bytes,
  last_hop_marked,
  last_hop_drops,
  paused_ns,
  stalled_ns,
  host_stops,
  host_stopped_ns,
  hiccups,
  hiccup_ns,
  stalls,
  worker_turns,
  worker_busy_turns,
  worker_sleeps,
  worker_busy_cycles,
  worker_packets,
  port_loans_sent,
  port_loans_copied,
  port_loans_recalled,
  port_loans_overdue,
  port_loans_received,
  probes_sent,
  probes_answered,
  probes_lost,
  one_way_there_ns,
  one_way_back_ns,
  count,
};

inline constexpr std::size_t kEngineSeries = detail::kCounters.size();
inline constexpr std::size_t kNicSeries =
    kEngineSeries + static_cast<std::size_t>(NicSeries::count);

// The values of a NIC, in the order of the table.
using NicValues = std::array<std::uint64_t, kNicSeries>;

constexpr std::size_t series_index(NicSeries series) {
  return kEngineSeries + static_cast<std::size_t>(series);
}

// Index of a counter of the engine, by its name; kEngineSeries: there is none.
constexpr std::size_t counter_index(std::string_view name) {
  std::size_t i = 0;
  for (const auto& entry : detail::kCounters) {
    if (entry.name == name) break;
    ++i;
  }
  return i;
}

// Lives as long as the program.
std::span<const Series, kNicSeries> nic_series();

// Copies all counters of the engine to their series; `malformed` is the sum of its reasons.
void put_counters(const EngineCounters& counters, NicValues& values);

// The list of docs/telemetry.md.
std::string series_markdown();

}  // namespace paceline::telemetry
