#include "dataplane/driver/virtual/expected_events.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace paceline {

double expected_events_per_us(const config::Scenario& scenario, const MessagePlan& plan) {
  std::vector<double> out(scenario.fabric.hosts);
  std::vector<double> in(scenario.fabric.hosts);
  double packets = 0;
  double busiest_us = 1;
  for (const PlannedMessage& message : plan.messages) {
    if (message.nvlink) continue;
    const auto bytes = static_cast<double>(message.bytes);
    packets += 1 + bytes / scenario.transport.payload_bytes;
    busiest_us = std::max(busiest_us, static_cast<double>(message.start.count) / 1e6);
    out[message.src] += bytes;
    in[message.dst] += bytes;
  }
  const double us_per_byte = 8e6 / static_cast<double>(scenario.fabric.rate.bps);
  for (std::uint32_t h = 0; h < scenario.fabric.hosts; ++h) {
    busiest_us = std::max(busiest_us, std::max(out[h], in[h]) * us_per_byte);
  }
  return 5 * packets / busiest_us;
}

}  // namespace paceline
