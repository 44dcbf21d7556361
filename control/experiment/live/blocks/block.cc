#include "control/experiment/live/blocks/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "dataplane/base/numbers/math.h"

namespace paceline::experiment::live {

namespace {

using telemetry::MessageFigures;

struct NamedTotal {
  std::string_view name;
  std::uint64_t NicTotals::*field;
};
constexpr std::array<NamedTotal, 10> kTotals{{
    {"tx_data_packets", &NicTotals::tx_data_packets},
    {"tx_data_bytes", &NicTotals::tx_data_bytes},
    {"rx_data_packets", &NicTotals::rx_data_packets},
    {"rx_data_bytes", &NicTotals::rx_data_bytes},
    {"rx_ce_packets", &NicTotals::rx_ce_packets},
    {"retransmitted_packets", &NicTotals::retransmitted_packets},
    {"cnps_received", &NicTotals::cnps_received},
    {"paused_ns", &NicTotals::paused_ns},
    {"worker_busy_cycles", &NicTotals::worker_busy_cycles},
    {"worker_packets", &NicTotals::worker_packets},
}};

constexpr double kLn2 = 0.693147180559945309417;

bool add_difference(std::uint64_t& sum, std::uint64_t before, std::uint64_t after) {
  if (after < before) return false;
  sum += after - before;
  return true;
}

bool add_totals(NicTotals& sum, const NicTotals& before, const NicTotals& after) {
  bool ok = true;
  for (const NamedTotal& total : kTotals) {
    std::uint64_t& into = sum.*total.field;
    const std::uint64_t a = before.*total.field;
    const std::uint64_t b = after.*total.field;
    // One NIC without it leaves the whole cluster without it.
    if (a == kNotCounted || b == kNotCounted) {
      into = kNotCounted;
    } else if (into != kNotCounted) {
      ok = add_difference(into, a, b) && ok;
    }
  }
  return ok;
}

double ratio(std::uint64_t part, std::uint64_t whole) {
  if (part == kNotCounted || whole == kNotCounted || whole == 0) return kUndefined;
  return static_cast<double>(part) / static_cast<double>(whole);
}

// Sums over the cluster's NICs.
struct Sums {
  std::array<MessageFigures, telemetry::kMessageSizes> messages{};
  NicTotals totals{0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  double seconds = 0;  // mean over NICs
  double capacity = 0;
  std::size_t nics = 0;
};

void fill_values(const Sums& sums, BlockRecord& out) {
  SizeFigures all;
  std::uint64_t bytes_begun = 0;
  std::uint64_t bytes_completed = 0;
  for (std::size_t s = 0; s < telemetry::kMessageSizes; ++s) {
    const MessageFigures& m = sums.messages[s];
    out.messages[s] = {m.begun, m.completed, m.failed, m.crossed};
    all.begun += m.begun;
    all.completed += m.completed;
    bytes_begun += m.begun_bytes;
    bytes_completed += m.completed_bytes;
  }
  const MessageFigures& small = sums.messages[0];
  const MessageFigures& medium = sums.messages[1];
  BlockValues& v = out.values;
  const std::uint64_t stalled_small = out.messages[0].stalled();
  const std::uint64_t stalled_medium = out.messages[1].stalled();
  v[BlockMetric::log_slowdown] = restricted_log_slowdown(small.completed + medium.completed,
                                                         small.log2_slowdown + medium.log2_slowdown,
                                                         stalled_small + stalled_medium);
  v[BlockMetric::p99_short] = slowdown_quantile(small.slowdown, stalled_small, 0.99);
  v[BlockMetric::p99_medium] = slowdown_quantile(medium.slowdown, stalled_medium, 0.99);
  v[BlockMetric::completed_share] = ratio(all.completed, all.completed + all.stalled());

  const NicTotals& t = sums.totals;
  const std::uint64_t delivered =
      t.rx_data_bytes == kNotCounted ? bytes_completed : t.rx_data_bytes;
  v[BlockMetric::goodput] = 8 * static_cast<double>(delivered) / sums.seconds;
  v[BlockMetric::offered] = 8 * static_cast<double>(bytes_begun) / sums.seconds;
  if (sums.capacity > 0) out.load = v[BlockMetric::offered] / sums.capacity;
  v[BlockMetric::retransmitted_share] = ratio(t.retransmitted_packets, t.tx_data_packets);
  v[BlockMetric::marked_share] = ratio(t.rx_ce_packets, t.rx_data_packets);
  v[BlockMetric::cnps_per_mb] = 1e6 * ratio(t.cnps_received, t.tx_data_bytes);
  // A worker's cycles and packets are reported with each of its NICs.
  v[BlockMetric::cycles_per_packet] = ratio(t.worker_busy_cycles, t.worker_packets);
  if (t.paused_ns != kNotCounted) {
    v[BlockMetric::pause_share] =
        static_cast<double>(t.paused_ns) / 1e9 / (sums.seconds * static_cast<double>(sums.nics));
  }
}

// Why the sample of an edge is invalid for this block; empty: it is valid.
std::string wrong(const BlockPlace& place, const NicSample& sample) {
  if (sample.guard != 0) return fmt::format("{}: guard trip {}", sample.nic, sample.guard);
  if (sample.arm != place.arm) {
    return fmt::format("{}: arm {} in force, {} scheduled", sample.nic, sample.arm, place.arm);
  }
  if (sample.epoch != place.epoch) {
    return fmt::format("{}: epoch {} in force, {} scheduled", sample.nic, sample.epoch,
                       place.epoch);
  }
  return {};
}

}  // namespace

std::vector<std::string_view> total_series() {
  std::vector<std::string_view> out;
  for (const NamedTotal& total : kTotals) out.push_back(total.name);
  return out;
}

bool set_total(NicTotals& totals, std::string_view series, std::uint64_t value) {
  const auto found = std::find_if(kTotals.begin(), kTotals.end(),
                                  [&](const NamedTotal& t) { return t.name == series; });
  if (found == kTotals.end()) return false;
  totals.*found->field = value;
  return true;
}

double restricted_log_slowdown(std::uint64_t completed, std::uint64_t log2_sum,
                               std::uint64_t stalled) {
  if (completed + stalled == 0) return kUndefined;
  const double logs = static_cast<double>(log2_sum) / static_cast<double>(telemetry::kLogUnit);
  const double sum = logs * kLn2 + static_cast<double>(stalled) * det_log(kStalledSlowdown);
  return sum / static_cast<double>(completed + stalled);
}

double slowdown_quantile(std::span<const std::uint64_t, telemetry::kSlowdownBuckets> buckets,
                         std::uint64_t stalled, double share) {
  std::uint64_t total = stalled;
  for (const std::uint64_t n : buckets) total += n;
  if (total == 0) return kUndefined;
  const double rank = share * static_cast<double>(total);
  double below = 0;
  for (std::size_t k = 0; k < buckets.size(); ++k) {
    const double here = static_cast<double>(buckets[k]);
    if (here > 0 && below + here >= rank) {
      const double part = std::max(0.0, rank - below) / here;
      return det_exp((static_cast<double>(k) + part) / 8 * kLn2);
    }
    below += here;
  }
  return kStalledSlowdown;
}

BlockRecord block_between(const BlockPlace& place, std::span<const NicSample> begin,
                          std::span<const NicSample> end) {
  BlockRecord out;
  out.place = place;
  const auto discard = [&out](std::string why) {
    out.discarded = Discarded::itself;
    out.why = std::move(why);
    return out;
  };
  if (begin.empty() || begin.size() != end.size()) {
    return discard(fmt::format("{} NICs at the begin, {} at the end", begin.size(), end.size()));
  }
  out.begin_ns = begin[0].at_ns;
  out.end_ns = end[0].at_ns;
  Sums sums;
  sums.nics = begin.size();
  for (std::size_t i = 0; i < begin.size(); ++i) {
    const NicSample& a = begin[i];
    const NicSample& b = end[i];
    if (a.nic != b.nic) return discard(fmt::format("{} at the begin, {} at the end", a.nic, b.nic));
    for (const NicSample* sample : {&a, &b}) {
      std::string why = wrong(place, *sample);
      if (!why.empty()) return discard(std::move(why));
    }
    if (b.at_ns <= a.at_ns) return discard(fmt::format("{}: no time passed", a.nic));
    bool ok = add_totals(sums.totals, a.totals, b.totals);
    for (std::size_t s = 0; s < telemetry::kMessageSizes; ++s) {
      ok = telemetry::add_growth(sums.messages[s], a.messages[s], b.messages[s]) && ok;
    }
    if (!ok) return discard(fmt::format("{}: counters ran backwards", a.nic));
    sums.seconds += static_cast<double>(b.at_ns - a.at_ns) / 1e9;
    sums.capacity += static_cast<double>(b.rate_bps);
    out.channels += b.channels;
  }
  sums.seconds /= static_cast<double>(sums.nics);
  fill_values(sums, out);
  return out;
}

}  // namespace paceline::experiment::live
