#include "control/experiment/metrics.h"

#include <algorithm>

namespace paceline::experiment {
namespace {

using enum Metric;
constexpr auto kHigher = Better::higher;
constexpr auto kLower = Better::lower;
constexpr auto kNeither = Better::neither;
constexpr auto kRatio = Compare::ratio;
constexpr auto kDifference = Compare::difference;
constexpr auto kPrimary = Role::primary;
constexpr auto kGuardrail = Role::guardrail;
constexpr auto kExploratory = Role::exploratory;
constexpr auto kDescription = Role::description;

// clang-format off: a table
// Slowdown = FCT / ideal FCT on an empty fabric with the real link clock. "Last hop" = egress ports
// towards hosts. Times and bytes are of virtual time and of the wire.
constexpr std::array<MetricSpec, kMetricCount> kMetricTable{{
    {first_token_p99_us, "first_token_p99_us", "first token p99", Unit::micros, kLower, kRatio,
     kPrimary, true, true,
     "from the arrival of a request to the last byte that its answer begins with, 99th percentile "
     "over the requests",
     true},
    {first_token_p50_us, "first_token_p50_us", "first token p50", Unit::micros, kLower, kRatio,
     kExploratory, true, true, "median", true},
    {job_time_us, "job_time_us", "job time", Unit::micros, kLower, kRatio, kPrimary, true, true,
     "from the beginning of a job to the end of its last operation", true},
    {job_exposed_share, "job_exposed_share", "exposed communication", Unit::share, kLower,
     kDifference, kExploratory, true, true,
     "share of the ranks' time in which they communicate, or wait for others to, and do not "
     "compute",
     true},
    {collective_efficiency, "collective_efficiency", "collective efficiency", Unit::share, kHigher,
     kRatio, kPrimary, true, true,
     "ideal over measured completion time, mean over the collectives; ideal = max over ports of "
     "wire bytes / C, plus base latency"},
    {collective_time_us, "collective_time_us", "collective time", Unit::micros, kLower, kRatio,
     kExploratory, true, false, "completion time, mean over the collectives"},
    {goodput_gbps, "goodput_gbps", "goodput", Unit::gbps, kHigher, kRatio, kGuardrail, true, true,
     "payload of completed messages over the time from the first start to the last completion, all "
     "hosts together"},
    {fct_mean_us, "fct_mean_us", "FCT mean", Unit::micros, kLower, kRatio, kExploratory, true, true,
     "message completion time, from its posting to its last acknowledgement"},
    {fct_p50_us, "fct_p50_us", "FCT p50", Unit::micros, kLower, kRatio, kExploratory, true, false,
     "median"},
    {fct_p99_us, "fct_p99_us", "FCT p99", Unit::micros, kLower, kRatio, kExploratory, true, true,
     "99th percentile"},
    {fct_p999_us, "fct_p999_us", "FCT p99.9", Unit::micros, kLower, kRatio, kExploratory, true,
     false, "99.9th percentile"},
    {slowdown_mean, "slowdown_mean", "slowdown mean", Unit::none, kLower, kRatio, kExploratory,
     true, false, "FCT over the ideal FCT of the same message on an empty fabric"},
    {slowdown_p50, "slowdown_p50", "slowdown p50", Unit::none, kLower, kRatio, kExploratory, true,
     false, "median"},
    {slowdown_p99, "slowdown_p99", "slowdown p99", Unit::none, kLower, kRatio, kExploratory, true,
     false, "99th percentile"},
    {slowdown_small_mean, "slowdown_small_mean", "slowdown mean, <= 64K", Unit::none, kLower,
     kRatio, kExploratory, true, true, "messages of at most 64 KiB"},
    {slowdown_small_p50, "slowdown_small_p50", "slowdown p50, <= 64K", Unit::none, kLower, kRatio,
     kExploratory, true, false, "messages of at most 64 KiB"},
    {slowdown_small_p99, "slowdown_small_p99", "slowdown p99, <= 64K", Unit::none, kLower, kRatio,
     kPrimary, true, true, "messages of at most 64 KiB"},
    {slowdown_medium_mean, "slowdown_medium_mean", "slowdown mean, 64K-1M", Unit::none, kLower,
     kRatio, kExploratory, true, false, "messages of more than 64 KiB and at most 1 MiB"},
    {slowdown_medium_p50, "slowdown_medium_p50", "slowdown p50, 64K-1M", Unit::none, kLower, kRatio,
     kExploratory, true, false, "messages of more than 64 KiB and at most 1 MiB"},
    {slowdown_medium_p99, "slowdown_medium_p99", "slowdown p99, 64K-1M", Unit::none, kLower, kRatio,
     kExploratory, true, true, "messages of more than 64 KiB and at most 1 MiB"},
    {slowdown_large_mean, "slowdown_large_mean", "slowdown mean, > 1M", Unit::none, kLower, kRatio,
     kExploratory, true, false, "messages of more than 1 MiB"},
    {slowdown_large_p50, "slowdown_large_p50", "slowdown p50, > 1M", Unit::none, kLower, kRatio,
     kExploratory, true, false, "messages of more than 1 MiB"},
    {slowdown_large_p99, "slowdown_large_p99", "slowdown p99, > 1M", Unit::none, kLower, kRatio,
     kExploratory, true, true, "messages of more than 1 MiB"},
    {queue_p99_bytes, "queue_p99_bytes", "last-hop queue p99", Unit::bytes, kLower, kRatio,
     kExploratory, false, true,
     "99th percentile over time of the queue depth of the last hop, worst port"},
    {queue_max_bytes, "queue_max_bytes", "last-hop queue max", Unit::bytes, kLower, kRatio,
     kExploratory, false, true, "greatest queue depth of any last-hop port"},
    {deepest_queue_bytes, "deepest_queue_bytes", "deepest queue", Unit::bytes, kLower, kRatio,
     kGuardrail, false, true,
     "greatest queue depth of any switch port, in fabrics with links between switches", true},
    {drops, "drops", "drops", Unit::packets, kLower, kDifference, kGuardrail, false, true,
     "packets lost to full buffers, all switches"},
    {lost_link_down, "lost_link_down", "lost, link down", Unit::packets, kLower, kDifference,
     kExploratory, false, true,
     "packets on a link when it failed, or sent to a failed one; where links fail", true},
    {lost_no_route, "lost_no_route", "lost, no route", Unit::packets, kLower, kDifference,
     kExploratory, false, true, "packets that no link leads to their host for; where links fail",
     true},
    {lost_on_links, "lost_on_links", "lost on links", Unit::packets, kLower, kDifference,
     kExploratory, false, true, "packets that vanished on links; where the scenario asks for it",
     true},
    {damaged_on_links, "damaged_on_links", "damaged on links", Unit::packets, kLower, kDifference,
     kExploratory, false, true,
     "packets that arrived damaged and were thrown away; where the scenario asks for it", true},
    {lost_control, "lost_control", "lost, control", Unit::packets, kLower, kDifference,
     kExploratory, false, true,
     "control messages dropped at their sender; where the scenario asks for it", true},
    {trimmed, "trimmed", "trimmed", Unit::packets, kLower, kDifference, kExploratory, false, true,
     "packets that lost their payload to a full queue; where switches trim", true},
    {retransmitted_bytes, "retransmitted_bytes", "retransmitted", Unit::bytes, kLower, kDifference,
     kGuardrail, false, true, "payload sent more than once"},
    {pfc_pause_us, "pfc_pause_us", "PFC pause time", Unit::micros, kLower, kDifference, kGuardrail,
     false, true,
     "time for which a class was paused, or had no credits, summed over ports and classes"},
    {ecn_marks, "ecn_marks", "ECN marks", Unit::packets, kNeither, kDifference, kExploratory, false,
     false, "packets marked congestion-experienced, all switches"},
    {cnps, "cnps", "CNPs", Unit::packets, kNeither, kDifference, kExploratory, false, true,
     "congestion notification packets sent"},
    {control_overhead, "control_overhead", "control overhead", Unit::share, kLower, kDifference,
     kExploratory, false, true,
     "share of the bytes on links in packets without payload: ACK, NAK, CNP, control messages"},
    {jain_fairness, "jain_fairness", "Jain fairness", Unit::none, kHigher, kDifference, kGuardrail,
     true, true, "Jain's index over the throughputs of equal messages; 1 = all equal"},
    {limited_application, "limited_application", "limited by application", Unit::share, kNeither,
     kDifference, kDescription, false, false,
     "share of the time of congestion contexts: nothing to send"},
    {limited_grant, "limited_grant", "limited by grant", Unit::share, kNeither, kDifference,
     kDescription, false, false, "... the receiver's grant"},
    {limited_uplink, "limited_uplink", "limited by uplink", Unit::share, kNeither, kDifference,
     kDescription, false, false, "... share of the own port"},
    {limited_path, "limited_path", "limited by path", Unit::share, kNeither, kDifference,
     kDescription, false, false, "... congestion seen on the path; a reactive algorithm's rate"},
    {limited_window, "limited_window", "limited by window", Unit::share, kNeither, kDifference,
     kDescription, false, false, "... bytes in flight"},
    {limited_credit, "limited_credit", "limited by credit", Unit::share, kNeither, kDifference,
     kDescription, false, false, "... cumulative ceiling or transport credits"},
    {limited_port, "limited_port", "limited by port", Unit::share, kNeither, kDifference,
     kDescription, false, false, "... line rate or pause"},
}};
// clang-format on

constexpr bool metrics_in_order() {
  for (std::size_t i = 0; i < kMetricCount; ++i) {
    if (index_of(kMetricTable[i].metric) != i) return false;
  }
  return true;
}
static_assert(metrics_in_order(), "rows follow the enumerators");

}  // namespace

const std::array<MetricSpec, kMetricCount>& metric_table() { return kMetricTable; }

std::optional<Metric> metric_by_name(std::string_view name) {
  const auto row = std::find_if(kMetricTable.begin(), kMetricTable.end(),
                                [name](const MetricSpec& spec) { return spec.name == name; });
  if (row == kMetricTable.end()) return std::nullopt;
  return row->metric;
}

std::string_view to_text(Better better) {
  switch (better) {
    case Better::higher:
      return "higher";
    case Better::lower:
      return "lower";
    case Better::neither:
      return "neither";
  }
  return "?";
}

std::string_view to_text(Compare compare) {
  return compare == Compare::ratio ? "ratio" : "difference";
}

std::string_view to_text(Role role) {
  switch (role) {
    case Role::primary:
      return "primary";
    case Role::guardrail:
      return "guardrail";
    case Role::exploratory:
      return "exploratory";
    case Role::description:
      return "description";
  }
  return "?";
}

std::string_view to_text(Unit unit) {
  switch (unit) {
    case Unit::none:
      return "";
    case Unit::share:
      return "share";
    case Unit::gbps:
      return "Gb/s";
    case Unit::micros:
      return "us";
    case Unit::bytes:
      return "bytes";
    case Unit::packets:
      return "packets";
  }
  return "?";
}

}  // namespace paceline::experiment
