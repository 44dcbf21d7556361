#include "control/experiment/live/analysis/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace paceline::experiment::live {

namespace {

// Every record at [block * clusters + cluster]; the first of a place counts.
std::vector<const BlockRecord*> by_place(const Schedule& schedule,
                                         std::span<const BlockRecord> records,
                                         std::vector<std::string>& errors) {
  const std::uint32_t clusters = schedule.mechanism.clusters;
  std::vector<const BlockRecord*> out(std::size_t{schedule.blocks()} * clusters, nullptr);
  for (const BlockRecord& record : records) {
    const BlockPlace& place = record.place;
    if (place.block >= schedule.blocks() || place.cluster >= clusters) {
      errors.push_back(
          fmt::format("block {}, cluster {}: not in the schedule", place.block, place.cluster));
      continue;
    }
    if (place.arm != schedule.arm(place.block, place.cluster)) {
      errors.push_back(fmt::format("block {}, cluster {}: arm {} recorded, {} scheduled",
                                   place.block, place.cluster, place.arm,
                                   schedule.arm(place.block, place.cluster)));
      continue;
    }
    const BlockRecord*& slot = out[std::size_t{place.block} * clusters + place.cluster];
    if (slot != nullptr) {
      errors.push_back(
          fmt::format("block {}, cluster {}: recorded twice", place.block, place.cluster));
    } else {
      slot = &record;
    }
  }
  return out;
}

// Adds one pair: usable or not, and whose fault that is.
void add_pair(const Schedule& schedule, const std::vector<const BlockRecord*>& places,
              std::uint32_t pair, PairTable& out) {
  const std::uint32_t clusters = schedule.mechanism.clusters;
  PairData data;
  data.pair = pair;
  data.whole = schedule.mechanism.whole(pair);
  data.clusters.assign(clusters, {nullptr, nullptr});
  std::string why;
  double load = 0;
  for (std::uint32_t b = 2 * pair; b < 2 * pair + 2; ++b) {
    for (std::uint32_t c = 0; c < clusters; ++c) {
      const std::uint8_t arm = schedule.arm(b, c);
      const BlockRecord* record = places[std::size_t{b} * clusters + c];
      ++out.planned_blocks[arm];
      const bool own_loss = record == nullptr || record->discarded == Discarded::itself;
      if (!own_loss) ++out.recorded_blocks[arm];
      if (record == nullptr) {
        if (why.empty()) why = fmt::format("no record of block {}", b);
      } else if (record->discarded != Discarded::no) {
        if (why.empty() || own_loss) why = record->why;
      } else {
        data.clusters[c][arm] = record;
        load += record->load;
      }
    }
  }
  ++out.attempted;
  if (!why.empty()) {
    ++out.discarded;
    out.why.push_back(fmt::format("pair {}: {}", pair, why));
    return;
  }
  // With carry-over both blocks may be in one arm: there are no contrasts within pairs.
  if (schedule.mechanism.carryover != 0) return;
  data.load = load / (2 * static_cast<double>(clusters));
  out.usable.push_back(std::move(data));
}

bool all_recorded(const std::vector<const BlockRecord*>& places, std::size_t from,
                  std::size_t count) {
  return std::all_of(places.begin() + static_cast<std::ptrdiff_t>(from),
                     places.begin() + static_cast<std::ptrdiff_t>(from + count),
                     [](const BlockRecord* r) { return r != nullptr; });
}

}  // namespace

PairTable pair_up(const Schedule& schedule, std::span<const BlockRecord> records, bool running) {
  PairTable out;
  const std::vector<const BlockRecord*> places = by_place(schedule, records, out.errors);
  const std::size_t per_pair = 2 * std::size_t{schedule.mechanism.clusters};
  std::uint32_t end = 0;  // behind the last pair of which anything was recorded
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] != nullptr) end = static_cast<std::uint32_t>(i / per_pair) + 1;
  }
  if (running && end > 0 && !all_recorded(places, (end - 1) * per_pair, per_pair)) --end;
  for (std::uint32_t pair = 0; pair < end; ++pair) add_pair(schedule, places, pair, out);
  return out;
}

Contrasts contrasts_of(const PairTable& table, BlockMetric metric, bool whole) {
  Contrasts out;
  out.metric = metric;
  double sums[2] = {0, 0};
  std::size_t count = 0;
  for (const PairData& pair : table.usable) {
    if (pair.whole != whole) continue;
    std::vector<double> values;
    double sum = 0;
    double pair_sums[2] = {0, 0};
    for (const auto& records : pair.clusters) {
      const double a = records[0]->values[metric];
      const double b = records[1]->values[metric];
      values.push_back(contrast(metric, a, b));
      sum += values.back();
      pair_sums[0] += a;
      pair_sums[1] += b;
    }
    if (!std::isfinite(sum)) {
      ++out.missing;
      continue;
    }
    sums[0] += pair_sums[0];
    sums[1] += pair_sums[1];
    count += values.size();
    out.means.push_back(sum / static_cast<double>(values.size()));
    out.pairs.push_back(pair.pair);
    out.loads.push_back(pair.load);
    out.by_cluster.push_back(std::move(values));
  }
  if (count > 0) {
    out.champion = sums[0] / static_cast<double>(count);
    out.candidate = sums[1] / static_cast<double>(count);
  }
  return out;
}

std::vector<BalanceCheck> check_balance(const PairTable& table, bool closed_loop) {
  std::vector<BalanceCheck> out;
  const auto as_double = [](std::uint64_t n) { return static_cast<double>(n); };
  const std::array<double, 2> planned{as_double(table.planned_blocks[0]),
                                      as_double(table.planned_blocks[1])};
  if (planned[0] > 0 && planned[1] > 0) {
    BalanceCheck blocks{"blocks",
                        {as_double(table.recorded_blocks[0]), as_double(table.recorded_blocks[1])},
                        planned,
                        share_test(table.recorded_blocks, planned)};
    out.push_back(blocks);
    const std::array<std::uint64_t, 2> lost{table.planned_blocks[0] - table.recorded_blocks[0],
                                            table.planned_blocks[1] - table.recorded_blocks[1]};
    const double share = as_double(lost[0] + lost[1]) / (planned[0] + planned[1]);
    out.push_back({"discarded blocks",
                   {as_double(lost[0]), as_double(lost[1])},
                   {planned[0] * share, planned[1] * share},
                   loss_test(lost, table.planned_blocks)});
  }
  // Per pair: what candidate blocks had beyond champion blocks.
  BalanceCheck channels{"channels", {}, {}, kUndefined};
  BalanceCheck offered{"offered bytes", {}, {}, kUndefined, !closed_loop};
  std::vector<double> channel_differences, offered_differences;
  for (const PairData& pair : table.usable) {
    double more_channels = 0;
    double more_offered = 0;
    for (const auto& records : pair.clusters) {
      for (std::size_t arm = 0; arm < 2; ++arm) {
        const BlockRecord& r = *records[arm];
        const double sign = arm == 0 ? -1 : 1;
        const double bytes =
            r.values[BlockMetric::offered] / 8 * static_cast<double>(r.end_ns - r.begin_ns) / 1e9;
        channels.observed[arm] += r.channels;
        offered.observed[arm] += bytes;
        more_channels += sign * r.channels;
        // Rates, because blocks differ in length by nanoseconds.
        more_offered += sign * r.values[BlockMetric::offered];
      }
    }
    channel_differences.push_back(more_channels);
    if (std::isfinite(more_offered)) offered_differences.push_back(more_offered);
  }
  channels.p = pairs_test(channel_differences);
  offered.p = pairs_test(offered_differences);
  for (BalanceCheck* check : {&channels, &offered}) {
    const double half = (check->observed[0] + check->observed[1]) / 2;
    check->expected = {half, half};
    out.push_back(*check);
  }
  return out;
}

}  // namespace paceline::experiment::live
