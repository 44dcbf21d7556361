#include "control/daemon/tuner/tuner_windows.h"

#include <algorithm>
#include <array>
#include <set>

namespace paceline::daemon {

using tuner::online::Window;

TunerWindows::Places TunerWindows::places_of(const Sampler& sampler) {
  Places p;
  p.tx_bytes = sampler.find_series("tx_data_bytes");
  p.rx_bytes = sampler.find_series("rx_data_bytes");
  p.tx_packets = sampler.find_series("tx_data_packets");
  p.rx_packets = sampler.find_series("rx_data_packets");
  p.ce = sampler.find_series("rx_ce_packets");
  p.cnps = sampler.find_series("cnps_received");
  p.retransmitted = sampler.find_series("retransmitted_packets");
  p.drops = sampler.find_series("last_hop_drops");
  p.paused = sampler.find_series("paused_ns");
  p.queue = sampler.find_series("last_hop_queue_bytes");
  p.queue_max = sampler.find_series("last_hop_queue_max_bytes");
  p.limiter = sampler.find_series("limited_application_ns");
  p.cycles = sampler.find_series("worker_busy_cycles");
  p.cycle_packets = sampler.find_series("worker_packets");
  return p;
}

bool TunerWindows::same_service(const Sampler& sampler) const {
  return known_ && sampler.header().service_start_unix_ns == service_start_ &&
         sampler.nics().size() == before_.size();
}

bool TunerWindows::add_nic(const Sampler& sampler, std::size_t nic, Window& out) {
  Totals& before = before_[nic];
  const NicLatest& sample = sampler.latest(nic);
  const std::span<const std::uint64_t> values = sampler.values(nic);
  if (values.size() != before.values.size()) return false;
  bool good = true;
  for (std::size_t s = 0; s < telemetry::kMessageSizes; ++s) {
    good = telemetry::add_growth(out.messages[s], before.messages[s], sample.messages[s]) && good;
  }
  const auto grown = [&](const std::optional<std::size_t>& place) {
    std::uint64_t by = 0;
    if (place) {
      by = values[*place] - before.values[*place];
      good = values[*place] >= before.values[*place] && good;
    }
    return by;
  };
  const std::uint64_t received = grown(places_.rx_bytes);
  const std::uint64_t packets = grown(places_.rx_packets);
  const std::uint64_t marked = grown(places_.ce);
  if (received >= out.rx_bytes) {
    out.rx_bytes = received;
    out.rx_packets = packets;
    out.ce_packets = marked;
  }
  out.tx_bytes = std::max(out.tx_bytes, grown(places_.tx_bytes));
  out.tx_packets = std::max(out.tx_packets, grown(places_.tx_packets));
  out.cnps_received += grown(places_.cnps);
  out.retransmitted += grown(places_.retransmitted);
  out.dropped += grown(places_.drops);
  out.paused_ns = std::max(out.paused_ns, grown(places_.paused));
  // A worker's cycles and packets are reported with each of its NICs.
  out.cycles += grown(places_.cycles);
  out.cycle_packets += grown(places_.cycle_packets);
  out.line_bps = std::max(out.line_bps, sampler.nics()[nic].rate_bps);
  for (std::size_t k = 0; places_.limiter && k < out.limiter_ns.size(); ++k) {
    out.limiter_ns[k] += grown(*places_.limiter + k);
  }
  if (places_.queue && places_.queue_max && values[*places_.queue_max] > 0) {
    // The deepest ever is known; where it has become deeper it was so in this window.
    const bool deeper = values[*places_.queue_max] > before.values[*places_.queue_max];
    const std::uint64_t deepest = values[deeper ? *places_.queue_max : *places_.queue];
    out.queue_p99_bytes = std::max(out.queue_p99_bytes, static_cast<double>(deepest));
  }
  return good;
}

void TunerWindows::glance(const Sampler& sampler, std::int64_t now_unix_ns) {
  glanced_ns_ = now_unix_ns;
  senders_ = 0;
  std::vector<double> delays;
  std::map<std::pair<std::size_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> seen;
  for (std::size_t nic = 0; nic < sampler.nics().size(); ++nic) {
    std::set<std::array<std::uint8_t, 16>> peers;
    for (const telemetry::QueuePairRecord& record : sampler.queue_pairs(nic)) {
      const std::pair bytes{record.rx_bytes, record.tx_bytes};
      seen[{nic, record.number}] = bytes;
      const auto was = pairs_.find({nic, record.number});
      if (was == pairs_.end()) continue;
      if (bytes.first > was->second.first) peers.insert(record.peer);
      const bool sends = bytes.second > was->second.second;
      if (sends && record.min_rtt_ns > 0 && record.srtt_ns >= record.min_rtt_ns) {
        delays.push_back(static_cast<double>(record.srtt_ns - record.min_rtt_ns));
      }
    }
    senders_ = std::max(senders_, static_cast<std::uint32_t>(peers.size()));
  }
  pairs_ = std::move(seen);
  delay_ns_ = -1;
  if (delays.empty()) return;
  const auto at = delays.begin() + static_cast<std::ptrdiff_t>((delays.size() - 1) * 99 / 100);
  std::nth_element(delays.begin(), at, delays.end());
  delay_ns_ = *at;
}

Window TunerWindows::look(const Sampler& sampler, std::int64_t now_unix_ns) {
  Window out;
  out.begin_ns = last_ns_;
  out.end_ns = now_unix_ns;
  const bool forward = now_unix_ns > last_ns_ && known_;
  if (!forward) out.begin_ns = now_unix_ns - 1;
  last_ns_ = now_unix_ns;
  if (!sampler.fresh()) {
    known_ = false;
    out.fresh = false;
    return out;
  }
  const bool same = same_service(sampler);
  if (!same) {
    places_ = places_of(sampler);
    service_start_ = sampler.header().service_start_unix_ns;
    before_.assign(sampler.nics().size(), {});
    pairs_.clear();
    glanced_ns_ = 0;
  }
  bool good = same && forward;
  for (std::size_t nic = 0; nic < before_.size(); ++nic) {
    if (same) good = add_nic(sampler, nic, out) && good;
    before_[nic].messages = sampler.latest(nic).messages;
    before_[nic].values.assign(sampler.values(nic).begin(), sampler.values(nic).end());
  }
  known_ = true;
  out.fresh = good;
  if (!good) return out;
  if (now_unix_ns - glanced_ns_ >= kGlanceNs || now_unix_ns < glanced_ns_) {
    glance(sampler, now_unix_ns);
  }
  out.senders = senders_;
  out.delay_p99_ns = delay_ns_;
  return out;
}

}  // namespace paceline::daemon
