// The metrics of one run: the one list that the emulator fills, the results file stores, the
// analysis compares and the table prints. Values of a run are an array indexed by Metric; NaN means
// "does not apply to this run" (no message of that size, no collective), never "zero".
//
// Adding a metric: a row and an enumerator in its group, `occasional`, so that files and intervals
// of runs that it does not apply to stay as they were. Names are part of the results file's schema
// 1 and never change their meaning.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cc/interface/decision.h"

namespace paceline::experiment {

enum class Metric : std::uint8_t {
  first_token_p99_us,
  first_token_p50_us,
  job_time_us,
  job_exposed_share,
  collective_efficiency,
  collective_time_us,
  goodput_gbps,
  fct_mean_us,
  fct_p50_us,
  fct_p99_us,
  fct_p999_us,
  slowdown_mean,
  slowdown_p50,
  slowdown_p99,
  slowdown_small_mean,
  slowdown_small_p50,
  slowdown_small_p99,
  slowdown_medium_mean,
  slowdown_medium_p50,
  slowdown_medium_p99,
  slowdown_large_mean,
  slowdown_large_p50,
  slowdown_large_p99,
  queue_p99_bytes,
  queue_max_bytes,
  deepest_queue_bytes,
  drops,
  lost_link_down,
  lost_no_route,
  lost_on_links,
  damaged_on_links,
  lost_control,
  trimmed,
  retransmitted_bytes,
  pfc_pause_us,
  ecn_marks,
  cnps,
  control_overhead,
  jain_fairness,
  limited_application,
  limited_grant,
  limited_uplink,
  limited_path,
  limited_window,
  limited_credit,
  limited_port,
};
inline constexpr std::size_t kMetricCount = 46;

// Which direction is good. `neither`: the number says how an algorithm works, not how well.
enum class Better : std::uint8_t { higher, lower, neither };

// How two arms are compared: by the ratio of their values (paired log ratios) or, where zero is an
// ordinary value or the scale is absolute, by the difference.
enum class Compare : std::uint8_t { ratio, difference };

// The role of a comparison.
//   primary      decides. A scenario has one: the first primary metric of the table that applies
//                (the time to the first token if a job has requests, else the time of a job, else
//                collective efficiency if there is a collective, else the p99 slowdown of small
//                messages). Other primary metrics of the table are exploratory there.
//   guardrail    must not get worse; tested one-sided at 1 %.
//   exploratory  everything else; false discoveries controlled over the whole experiment.
//   description  printed, never tested.
enum class Role : std::uint8_t { primary, guardrail, exploratory, description };

enum class Unit : std::uint8_t { none, share, gbps, micros, bytes, packets };

struct MetricSpec {
  Metric metric;
  std::string_view name;   // key in the results file
  std::string_view label;  // row of the table
  Unit unit;
  Better better;
  Compare compare;
  Role role;
  bool needs_completion;  // has its meaning only if every message of the run completed: a run that
                          // did not finish is at least as bad as any that did
  bool headline;          // in the brief table
  std::string_view meaning;  // definition, for the documentation and the JSON
  bool occasional = false;   // in a results file only where it applies to one of the runs
};

// Bounds of the size bins, inclusive: 64 KiB and 1 MiB are the common RDMA message sizes.
inline constexpr std::uint64_t kSmallMessageBytes = 64 * 1024;
inline constexpr std::uint64_t kMediumMessageBytes = 1024 * 1024;

enum class SizeBin : std::uint8_t { all, small, medium, large };
constexpr SizeBin size_bin(std::uint64_t message_bytes) {
  if (message_bytes <= kSmallMessageBytes) return SizeBin::small;
  return message_bytes <= kMediumMessageBytes ? SizeBin::medium : SizeBin::large;
}

enum class SlowdownStatistic : std::uint8_t { mean, p50, p99 };
constexpr Metric slowdown_metric(SizeBin bin, SlowdownStatistic statistic) {
  return static_cast<Metric>(static_cast<unsigned>(Metric::slowdown_mean) +
                             3 * static_cast<unsigned>(bin) + static_cast<unsigned>(statistic));
}
static_assert(slowdown_metric(SizeBin::large, SlowdownStatistic::p99) ==
              Metric::slowdown_large_p99);

// Share of the time in which contexts with data to send were held back by `limiter`.
constexpr Metric limiter_metric(cc::Limiter limiter) {
  return static_cast<Metric>(static_cast<unsigned>(Metric::limited_application) +
                             static_cast<unsigned>(limiter));
}
static_assert(limiter_metric(cc::Limiter::port) == Metric::limited_port && cc::kLimiters == 7);

constexpr std::size_t index_of(Metric metric) { return static_cast<std::size_t>(metric); }

// Every metric, in the order of the enumerators.
const std::array<MetricSpec, kMetricCount>& metric_table();
inline const MetricSpec& spec_of(Metric metric) { return metric_table()[index_of(metric)]; }

std::optional<Metric> metric_by_name(std::string_view name);

std::string_view to_text(Better better);    // "higher", "lower", "neither"
std::string_view to_text(Compare compare);  // "ratio", "difference"
std::string_view to_text(Role role);        // "primary", ...
std::string_view to_text(Unit unit);        // "", "share", "Gb/s", "us", "bytes", "packets"

}  // namespace paceline::experiment
