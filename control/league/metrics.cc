#include "control/league/metrics.h"

#include <algorithm>
#include <map>
#include <vector>

#include "control/experiment/analysis/statistics.h"

namespace paceline::league {

namespace {

using enum Measure;
using experiment::Unit;
constexpr auto kHigher = experiment::Better::higher;
constexpr auto kLower = experiment::Better::lower;

// clang-format off: a table
constexpr std::array<MeasureSpec, kMeasures> kTable{{
    {efficiency, "efficiency", "efficiency", Unit::share, kHigher,
     "collectives: ideal over measured completion time; open loop: payload delivered by the end of "
     "the "
     "arrivals over what the hosts' links could have carried by then; flow lists: least possible "
     "over "
     "measured time to the last completion"},
    {goodput_gbps, "goodput_gbps", "goodput", Unit::gbps, kHigher,
     "payload of completed messages over the time from the first start to the last completion, all "
     "hosts"},
    {slowdown_p50, "slowdown_p50", "slowdown p50", Unit::none, kLower,
     "completion time over that of the same message alone on an empty fabric: median over "
     "messages"},
    {slowdown_p99, "slowdown_p99", "slowdown p99", Unit::none, kLower,
     "99th percentile, nearest rank"},
    {slowdown_p999, "slowdown_p999", "slowdown p99.9", Unit::none, kLower,
     "99.9th percentile; the greatest where there are fewer than 1000 messages"},
    {slowdown_small_p50, "slowdown_small_p50", "slowdown p50, <= 64 KiB", Unit::none, kLower,
     "messages of at most 64 KiB"},
    {slowdown_small_p99, "slowdown_small_p99", "slowdown p99, <= 64 KiB", Unit::none, kLower,
     "messages of at most 64 KiB"},
    {slowdown_small_p999, "slowdown_small_p999", "slowdown p99.9, <= 64 KiB", Unit::none, kLower,
     "messages of at most 64 KiB"},
    {slowdown_medium_p50, "slowdown_medium_p50", "slowdown p50, 64 KiB - 1 MiB", Unit::none, kLower,
     "messages of more than 64 KiB and at most 1 MiB"},
    {slowdown_medium_p99, "slowdown_medium_p99", "slowdown p99, 64 KiB - 1 MiB", Unit::none, kLower,
     "messages of more than 64 KiB and at most 1 MiB"},
    {slowdown_medium_p999, "slowdown_medium_p999", "slowdown p99.9, 64 KiB - 1 MiB", Unit::none,
     kLower, "messages of more than 64 KiB and at most 1 MiB"},
    {slowdown_large_p50, "slowdown_large_p50", "slowdown p50, > 1 MiB", Unit::none, kLower,
     "messages of more than 1 MiB"},
    {slowdown_large_p99, "slowdown_large_p99", "slowdown p99, > 1 MiB", Unit::none, kLower,
     "messages of more than 1 MiB"},
    {slowdown_large_p999, "slowdown_large_p999", "slowdown p99.9, > 1 MiB", Unit::none, kLower,
     "messages of more than 1 MiB"},
    {queue_max_bytes, "queue_max_bytes", "peak queue", Unit::bytes, kLower,
     "greatest depth of any switch port, exact"},
    {queue_mean_bytes, "queue_mean_bytes", "mean queue", Unit::bytes, kLower,
     "time-weighted mean depth of the switch port where it is greatest"},
    {pause_us, "pause_us", "pause time", Unit::micros, kLower,
     "time for which a class was held by flow control, summed over ports and classes"},
    {drops, "drops", "drops", Unit::packets, kLower, "packets lost to full buffers"},
    {retransmitted_bytes, "retransmitted_bytes", "retransmitted", Unit::bytes, kLower,
     "payload sent more than once"},
    {jain_fairness, "jain_fairness", "Jain fairness", Unit::none, kHigher,
     "Jain's index over the throughputs of messages, where all are of one size; 1 = all equal"},
    {control_overhead, "control_overhead", "control overhead", Unit::share, kLower,
     "share of the bytes on links in packets without payload"},
}};
// clang-format on

// Picoseconds per payload byte of a host's link, from what messages take alone: the slope between
// the shortest and the longest, so that the latency of the path stays out of it.
double picos_per_byte(std::span<const Message> messages) {
  const auto [least, most] =
      std::minmax_element(messages.begin(), messages.end(),
                          [](const Message& a, const Message& b) { return a.bytes < b.bytes; });
  const double ideal = static_cast<double>(most->ideal.count);
  const double slope = (ideal - static_cast<double>(least->ideal.count)) /
                       std::max(1.0, static_cast<double>(most->bytes - least->bytes));
  return most->bytes == least->bytes ? ideal / static_cast<double>(most->bytes) : slope;
}

using Ports = std::map<std::uint32_t, std::vector<const Message*>>;

Ports by_port(std::span<const Message> messages, std::uint32_t Message::*end) {
  Ports ports;
  for (const Message& m : messages) ports[m.*end].push_back(&m);
  for (auto& [port, list] : ports) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Message* a, const Message* b) { return a->start < b->start; });
  }
  return ports;
}

}  // namespace

const std::array<MeasureSpec, kMeasures>& measure_table() { return kTable; }

std::optional<Measure> measure_by_name(std::string_view name) {
  for (const MeasureSpec& spec : kTable) {
    if (spec.name == name) return spec.measure;
  }
  return std::nullopt;
}

void slowdown_measures(std::span<const Message> messages, Measures& out) {
  std::array<std::vector<double>, 4> slowdown;  // by SizeBin; all first
  for (const Message& m : messages) {
    const double s = static_cast<double>(m.took.count) / static_cast<double>(m.ideal.count);
    slowdown[0].push_back(s);
    slowdown[static_cast<std::size_t>(experiment::size_bin(m.bytes))].push_back(s);
  }
  for (std::size_t bin = 0; bin < slowdown.size(); ++bin) {
    std::vector<double>& values = slowdown[bin];
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    const std::size_t first = index_of(slowdown_p50) + 3 * bin;
    out[static_cast<Measure>(first)] = experiment::nearest_rank(values, 0.5);
    out[static_cast<Measure>(first + 1)] = experiment::nearest_rank(values, 0.99);
    out[static_cast<Measure>(first + 2)] = experiment::nearest_rank(values, 0.999);
  }
}

double makespan_efficiency(std::span<const Message> messages) {
  if (messages.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double per_byte = picos_per_byte(messages);
  Picos first = messages.front().start;
  Picos last{0};
  double least = 0;  // nothing can be over before this
  for (const Message& m : messages) {
    if (!m.completed) return std::numeric_limits<double>::quiet_NaN();
    first = earlier(first, m.start);
    last = later(last, m.start + m.took);
    least = std::max(least, static_cast<double>((m.start + m.ideal).count));
  }
  for (const auto end : {&Message::src, &Message::dst}) {
    for (const auto& [port, list] : by_port(messages, end)) {
      double free = 0;
      for (const Message* m : list) {
        free = std::max(free, static_cast<double>(m->start.count)) +
               static_cast<double>(m->bytes) * per_byte;
      }
      least = std::max(least, free);
    }
  }
  return (least - static_cast<double>(first.count)) / static_cast<double>((last - first).count);
}

double deliverable_bytes(std::span<const Message> messages, Picos at) {
  if (messages.empty()) return 0;
  const double per_byte = picos_per_byte(messages);
  const auto until = static_cast<double>(at.count);
  double most = -1;
  for (const auto end : {&Message::src, &Message::dst}) {
    double sum = 0;
    for (const auto& [port, list] : by_port(messages, end)) {
      double free = 0;
      for (const Message* m : list) {
        const double begin = std::max(free, static_cast<double>(m->start.count));
        free = begin + static_cast<double>(m->bytes) * per_byte;
        sum += std::max(0.0, (std::min(free, until) - begin) / per_byte);
      }
    }
    most = most < 0 ? sum : std::min(most, sum);
  }
  return most;
}

}  // namespace paceline::league
