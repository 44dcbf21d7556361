#include "tools/workload/ideal.h"

#include <cstddef>
#include <vector>

namespace paceline::workload {

Picos ideal_completion(const MessagePlan& plan, std::uint16_t collective,
                       std::span<const Rate> host_rates, const WireBytes& wire_bytes,
                       Picos base_latency) {
  std::vector<std::uint64_t> in(host_rates.size()), out(host_rates.size());
  for (const PlannedMessage& m : plan.messages) {
    if (m.collective != collective) continue;
    const std::uint64_t bytes = wire_bytes(m.bytes);
    out[m.src] += bytes;
    in[m.dst] += bytes;
  }
  Picos busiest{0};
  for (std::size_t h = 0; h < host_rates.size(); ++h) {
    busiest = later(busiest, serialization_time(in[h], host_rates[h]));
    busiest = later(busiest, serialization_time(out[h], host_rates[h]));
  }
  return busiest + base_latency;
}

void fill_ideals(MessagePlan& plan, std::span<const Rate> host_rates, const WireBytes& wire_bytes,
                 Picos base_latency) {
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    plan.collectives[i].ideal =
        ideal_completion(plan, static_cast<std::uint16_t>(i), host_rates, wire_bytes, base_latency);
  }
}

}  // namespace paceline::workload
