#include "control/tuner/online/observation/window.h"

#include <algorithm>

#include "dataplane/base/numbers/math.h"

namespace paceline::tuner::online {

void add(Window& into, const Window& from) {
  if (into.end_ns == 0) {
    into = from;
    return;
  }
  const double before = span_ns(into);
  const double here = span_ns(from);
  if (from.cpu_share >= 0) {
    into.cpu_share = into.cpu_share < 0
                         ? from.cpu_share
                         : (into.cpu_share * before + from.cpu_share * here) / (before + here);
  }
  into.end_ns = from.end_ns;
  into.order = from.order;
  for (std::size_t s = 0; s < telemetry::kMessageSizes; ++s) {
    telemetry::add(into.messages[s], from.messages[s]);
  }
  into.line_bps = std::max(into.line_bps, from.line_bps);
  into.tx_bytes += from.tx_bytes;
  into.rx_bytes += from.rx_bytes;
  into.tx_packets += from.tx_packets;
  into.rx_packets += from.rx_packets;
  into.ce_packets += from.ce_packets;
  into.cnps_received += from.cnps_received;
  into.retransmitted += from.retransmitted;
  into.dropped += from.dropped;
  into.paused_ns += from.paused_ns;
  into.senders = std::max(into.senders, from.senders);
  into.cycles += from.cycles;
  into.cycle_packets += from.cycle_packets;
  into.delay_p99_ns = std::max(into.delay_p99_ns, from.delay_p99_ns);
  into.queue_p99_bytes = std::max(into.queue_p99_bytes, from.queue_p99_bytes);
  if (from.jain >= 0) into.jain = into.jain < 0 ? from.jain : std::min(into.jain, from.jain);
  into.phase_ratio = std::max(into.phase_ratio, from.phase_ratio);
  for (std::size_t k = 0; k < into.limiter_ns.size(); ++k) into.limiter_ns[k] += from.limiter_ns[k];
}

std::optional<double> slowdown_quantile(const telemetry::MessageFigures& figures, double q) {
  std::uint64_t total = 0;
  for (const std::uint64_t n : figures.slowdown) total += n;
  if (total == 0) return std::nullopt;
  const double wanted = q * static_cast<double>(total);
  double below = 0;
  for (std::size_t k = 0; k < telemetry::kSlowdownBuckets; ++k) {
    const double here = static_cast<double>(figures.slowdown[k]);
    if (here > 0 && below + here >= wanted) {
      const double within = std::clamp((wanted - below) / here, 0.0, 1.0);
      return det_pow(2, (static_cast<double>(k) + within) / 8);
    }
    below += here;
  }
  return det_pow(2, static_cast<double>(telemetry::kSlowdownBuckets) / 8);
}

}  // namespace paceline::tuner::online
