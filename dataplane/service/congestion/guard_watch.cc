#include "dataplane/service/congestion/guard_watch.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "dataplane/telemetry/series.h"

namespace paceline::service {

GuardWatch::GuardWatch(std::span<const std::byte> segment, std::size_t nics) : nics_(nics) {
  if (const std::string wrong = reader_.open(segment); !wrong.empty()) {
    spdlog::error("the guard cannot read the workers' counters: {}", wrong);
  }
}

std::optional<GuardSample> GuardWatch::read(std::size_t nic, telemetry::NicSample& sample) const {
  using telemetry::NicSeries;
  if (nic >= reader_.nics().size() || !reader_.read(nic, sample)) return std::nullopt;
  const auto of = [&](NicSeries series) { return sample.values[telemetry::series_index(series)]; };
  // Our own segment: the series are where our own table says.
  constexpr std::size_t kSent = telemetry::counter_index("tx_data_packets");
  constexpr std::size_t kAgain = telemetry::counter_index("retransmitted_packets");
  static_assert(kSent < telemetry::kEngineSeries && kAgain < telemetry::kEngineSeries);
  GuardSample out;
  out.at_ns = sample.body.at_ns;
  out.data_packets = sample.values[kSent] + sample.values[kAgain];
  out.retransmitted_packets = sample.values[kAgain];
  out.paused_ns = of(NicSeries::paused_ns);
  out.stalled_ns = of(NicSeries::stalled_ns);
  out.stopped_ns = of(NicSeries::host_stopped_ns);
  out.dropped_packets = of(NicSeries::last_hop_drops);
  return out;
}

bool GuardWatch::look(std::size_t nic) {
  const std::optional<GuardSample> now = read(nic, sample_);
  if (!now) return false;
  looked_at_ = nic;
  now_ = *now;
  return true;
}

std::optional<std::uint64_t> GuardWatch::new_quarantine() {
  constexpr std::size_t kQuarantines = telemetry::counter_index("plugin_quarantines");
  const std::uint64_t all = sample_.values[kQuarantines];
  if (all <= nics_[looked_at_].quarantines) return std::nullopt;
  nics_[looked_at_].quarantines = all;
  return all;
}

std::optional<GuardWatch::Finding> GuardWatch::judge(const GuardLimits& limits,
                                                     const NicInForce& in_force) {
  Nic& nic = nics_[looked_at_];
  const auto trip = nic.judge.look(now_, limits);
  const bool two = in_force.clusters != 0 && sample_.body.generation == in_force.generation;
  if (two) {
    // Names the arm that broke the limit.
    const auto by_arm = nic.by_arm.look(now_, sample_.clusters, limits);
    if (by_arm) return Finding{by_arm->trip, by_arm->arm};
  }
  if (!trip) {
    if (nic.judge.calm() && (!two || nic.by_arm.calm())) nic.reported = false;
    return std::nullopt;
  }
  if (!two) return Finding{*trip, std::nullopt};
  // The port towards a NIC serves the arm of its own cluster.
  return Finding{
      *trip, trip->rule == GuardRule::dropped ? std::optional(in_force.arm) : nic.by_arm.suspect()};
}

void GuardWatch::restart(std::size_t n) {
  Nic& nic = nics_[n];
  // Not into the sample of the look that may follow.
  telemetry::NicSample sample;
  if (const auto now = read(n, sample)) nic.judge.begin(*now);
  nic.by_arm.forget();
  nic.reported = false;
}

bool GuardWatch::report(std::size_t nic) { return !std::exchange(nics_[nic].reported, true); }

void GuardWatch::note(std::size_t n, GuardEvent event) {
  Nic& nic = nics_[n];
  event.number = ++nic.last_event;
  nic.events.push_back(std::move(event));
  if (nic.events.size() > kMostEvents) nic.events.pop_front();
}

}  // namespace paceline::service
