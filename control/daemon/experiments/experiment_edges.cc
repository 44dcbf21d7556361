#include "control/daemon/experiments/experiment_edges.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::daemon {

namespace live = experiment::live;

ExperimentEdges::ExperimentEdges(const Sampler& sampler,
                                 std::vector<std::vector<std::string>> clusters, bool receivers)
    : sampler_(sampler), clusters_(std::move(clusters)), receivers_(receivers) {
  for (const auto& cluster : clusters_) {
    for (const std::string& nic : cluster) nics_[nic] = {};
  }
}

void ExperimentEdges::sampled(std::int64_t now_ns) {
  ++rounds_;
  std::string lacking;
  const bool open = sampler_.is_open();
  if (open && sampler_.header().service_start_unix_ns != start_unix_ns_) {
    start_unix_ns_ = sampler_.header().service_start_unix_ns;
    for (auto& [name, nic] : nics_) nic.known = false;
  }
  if (first_ns_ == 0) first_ns_ = now_ns;
  last_ns_ = now_ns;
  const auto hiccups = open ? sampler_.find_series("hiccup_ns") : std::nullopt;
  for (auto& [name, nic] : nics_) {
    const auto index = open ? sampler_.find_nic(name) : std::nullopt;
    const TelemetryState state = index ? sampler_.state(*index) : TelemetryState::lost;
    if (state != TelemetryState::fresh) {
      ++nic.missing;
      if (lacking.empty()) {
        lacking = fmt::format("telemetry of {} is {}", name, telemetry_state_name(state));
      }
      continue;
    }
    if (hiccups) {
      const std::uint64_t hiccup_ns = sampler_.values(*index)[*hiccups];
      if (nic.known && hiccup_ns > nic.last_hiccup_ns)
        nic.late_ns += hiccup_ns - nic.last_hiccup_ns;
      nic.last_hiccup_ns = hiccup_ns;
    }
    const auto at = static_cast<std::int64_t>(sampler_.latest(*index).body.at_ns);
    if (!nic.known || at - now_ns > nic.ahead_ns) nic.ahead_ns = at - now_ns;
    nic.known = true;
  }
  const bool fresh = lacking.empty();
  if (fresh != fresh_ || !seen_) changed_ns_ = now_ns;
  fresh_ = fresh;
  seen_ = true;
  if (!fresh) lacking_ = std::move(lacking);
  if (!fresh && now_ns - changed_ns_ >= blink_ns_) trouble_ = lacking_;
  if (fresh && now_ns - changed_ns_ >= well_for_ns_) trouble_.clear();
}

std::vector<live::Runner::EdgeSample> ExperimentEdges::take(std::int64_t now_ns) {
  std::vector<live::Runner::EdgeSample> out;
  for (std::size_t c = 0; c < clusters_.size(); ++c) {
    live::Runner::EdgeSample edge;
    std::uint32_t missing = 0;
    for (std::size_t own = 0; own < clusters_.size(); ++own) {
      if (!receivers_ && own != c) continue;
      for (const std::string& name : clusters_[own]) {
        edge.nics.push_back(receivers_ ? towards(c, own, name, now_ns) : sample_of(name, now_ns));
        missing = std::max(missing, nics_[name].missing);
      }
    }
    // Without any look there is nothing to compare with.
    edge.missing = rounds_ == 0 ? 1 : static_cast<double>(missing) / static_cast<double>(rounds_);
    out.push_back(std::move(edge));
  }
  rounds_ = 0;
  for (auto& [name, nic] : nics_) nic.missing = 0;
  return out;
}

live::NicSample ExperimentEdges::sample_of(const std::string& name, std::int64_t now_ns) const {
  live::NicSample out;
  out.nic = name;
  const auto index = sampler_.find_nic(name);
  if (!index || !sampler_.is_open()) return out;
  const NicLatest& latest = sampler_.latest(*index);
  out.at_ns = latest.body.at_ns;
  const Nic& nic = nics_.at(name);
  const std::int64_t by_now = now_ns + nic.ahead_ns;
  if (nic.known && by_now - static_cast<std::int64_t>(out.at_ns) > kAsleepNs) {
    out.at_ns = static_cast<std::uint64_t>(by_now);
  }
  out.epoch = latest.body.epoch;
  out.arm = latest.body.arm;
  out.guard = latest.body.guard;
  out.rate_bps = sampler_.nics()[*index].rate_bps;
  out.messages = latest.messages;
  const std::span<const std::uint64_t> values = sampler_.values(*index);
  const std::span<const SeriesInfo> series = sampler_.series();
  for (std::size_t i = 0; i < series.size(); ++i) {
    live::set_total(out.totals, series[i].name, values[i]);
    if (series[i].name == "queue_pairs") out.channels = static_cast<std::uint32_t>(values[i]);
  }
  return out;
}

// The figures of a NIC of cluster `own` towards the ports of `cluster`.
live::NicSample ExperimentEdges::towards(std::size_t cluster, std::size_t own,
                                         const std::string& name, std::int64_t now_ns) const {
  live::NicSample out = sample_of(name, now_ns);
  const auto index = sampler_.find_nic(name);
  if (!index || !sampler_.is_open()) return out;
  const NicLatest& latest = sampler_.latest(*index);
  // Clusters are not counted (any more): the sample belongs to no block.
  if (latest.clusters.size() != clusters_.size() || latest.body.own_cluster != own) {
    out.epoch = 0;
    return out;
  }
  const telemetry::ClusterSample& of = latest.clusters[cluster];
  out.arm = of.figures.arm;
  out.channels = of.figures.queue_pairs;
  out.messages = of.messages;
  out.totals.tx_data_packets = of.figures.tx_data_packets;
  out.totals.retransmitted_packets = of.figures.retransmitted_packets;
  out.totals.tx_data_bytes = live::kNotCounted;
  out.totals.cnps_received = live::kNotCounted;
  out.totals.paused_ns = live::kNotCounted;
  out.totals.worker_busy_cycles = live::kNotCounted;
  out.totals.worker_packets = live::kNotCounted;
  if (cluster != own) {
    // Received bytes and the port's rate belong to the NIC's own cluster.
    out.rate_bps = 0;
    out.totals.rx_data_packets = out.totals.rx_data_bytes = out.totals.rx_ce_packets = 0;
  }
  return out;
}

double ExperimentEdges::host_late() const {
  if (last_ns_ <= first_ns_) return 0;
  std::uint64_t late_ns = 0;
  for (const auto& [name, nic] : nics_) late_ns = std::max(late_ns, nic.late_ns);
  return std::min(1.0, static_cast<double>(late_ns) / static_cast<double>(last_ns_ - first_ns_));
}

bool ExperimentEdges::guard_tripped() const {
  if (!sampler_.is_open()) return false;
  return std::any_of(nics_.begin(), nics_.end(), [&](const auto& entry) {
    const auto index = sampler_.find_nic(entry.first);
    return index && sampler_.latest(*index).body.guard != 0;
  });
}

}  // namespace paceline::daemon
