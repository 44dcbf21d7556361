#include "tools/run/run_series.h"

#include <algorithm>

namespace paceline::tools {

namespace {

using experiment::Signal;
using experiment::TimeSeries;

constexpr Picos kShortestDistance{100'000};  // 100 ns, about one packet at 400 Gb/s

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

SeriesRecorder::Look SeriesRecorder::look_at(VirtualWorld& world, Picos at) {
  fabric::Network& network = world.network();
  if (looks_.empty()) {
    switch_links_.clear();
    for (std::uint32_t link = 0; link < network.links(); ++link) {
      if (network.egress_stats(link)) switch_links_.push_back(link);
    }
  }
  Look look;
  look.at = at;
  for (const std::uint32_t link : switch_links_) {
    const std::uint64_t bytes = network.queue_bytes(link, at);
    look.deepest = std::max(look.deepest, bytes);
    look.queued += bytes;
  }
  auto& [delivered, paused, cnps, marked, dropped, retransmitted] = look.totals;
  for (std::uint32_t h = 0; h < world.hosts(); ++h) {
    const telemetry::EngineCounters counters = world.engine(h).counters();
    delivered += counters.rx_data_bytes;
    cnps += counters.cnps_sent;
    retransmitted += counters.retransmitted_bytes;
  }
  paused = static_cast<std::uint64_t>(network.pause_time(at).count);
  marked = network.stats().marked_packets;
  dropped = network.stats().total_drops();
  return look;
}

void SeriesRecorder::look(VirtualWorld& world, Picos at) {
  if (at < next_) return;
  looks_.push_back(look_at(world, at));
  if (looks_.size() == kMaxLooks) {  // those at even multiples stay
    for (std::size_t i = 0; i < kMaxLooks / 2; ++i) looks_[i] = looks_[2 * i + 1];
    looks_.resize(kMaxLooks / 2);
    step_ = step_ * 2;
  }
  next_ = at + step_;
}

TimeSeries SeriesRecorder::finish(VirtualWorld& world) {
  TimeSeries series;
  series.end = world.now();
  if (series.end.count <= 0) return series;
  while (!looks_.empty() && looks_.back().at >= series.end) looks_.pop_back();
  const auto full = static_cast<std::int64_t>(looks_.size());
  series.looks = static_cast<std::uint32_t>(
      std::max<std::int64_t>(1, up(full, static_cast<std::int64_t>(kIntervals))));
  series.interval = step_ * series.looks;
  looks_.push_back(look_at(world, series.end));

  const auto intervals = static_cast<std::size_t>(up(series.end.count, series.interval.count));
  for (auto& values : series.values) values.assign(intervals, 0);
  const auto at = [&series](Signal signal, std::size_t i) -> std::uint64_t& {
    return series.values[static_cast<std::size_t>(signal)][i];
  };
  // Each interval's end has a look of its own, so that growth between ends is that of the interval.
  std::array<std::uint64_t, kTotals> before{};
  for (const Look& look : looks_) {
    const auto i = static_cast<std::size_t>((look.at.count - 1) / series.interval.count);
    at(Signal::deepest_queue, i) = std::max(at(Signal::deepest_queue, i), look.deepest);
    at(Signal::queued, i) = std::max(at(Signal::queued, i), look.queued);
    for (std::size_t t = 0; t < kTotals; ++t) {
      at(static_cast<Signal>(static_cast<std::size_t>(Signal::delivered) + t), i) +=
          look.totals[t] - before[t];
    }
    before = look.totals;
  }
  return series;
}

Picos first_look_distance(const config::Scenario& scenario, const MessagePlan& plan) {
  std::vector<double> out(scenario.fabric.hosts);
  std::vector<double> in(scenario.fabric.hosts);
  double least = 0;  // picoseconds
  const double picos_per_byte = 8e12 / static_cast<double>(scenario.fabric.rate.bps);
  for (const PlannedMessage& message : plan.messages) {
    least = std::max(least, static_cast<double>(message.start.count));
    out[message.src] += static_cast<double>(message.bytes) * picos_per_byte;
    in[message.dst] += static_cast<double>(message.bytes) * picos_per_byte;
  }
  for (std::uint32_t h = 0; h < scenario.fabric.hosts; ++h) {
    least = std::max({least, out[h], in[h]});
  }
  least = std::min(least, static_cast<double>(scenario.duration.count));
  const double wanted = least / static_cast<double>(SeriesRecorder::kMaxLooks);
  // The largest of 1, 2, 5 x 10^n that is not above the wanted distance: gives round numbers in the
  // file.
  std::int64_t distance = kShortestDistance.count;
  while (static_cast<double>(distance) * 10 <= wanted) distance *= 10;
  for (const std::int64_t factor : {5, 2}) {
    if (static_cast<double>(distance * factor) <= wanted) {
      distance *= factor;
      break;
    }
  }
  return {distance};
}

}  // namespace paceline::tools
