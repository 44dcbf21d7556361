#include "tools/diagnose/pair_evidence.h"

#include "dataplane/fabric/wire/host_intake.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline::tools {

std::uint64_t losses_of(const config::Scenario& scenario,
                        const telemetry::QueuePairRecord& record) {
  // Under go-back-N a loss is reported once, however many packets are sent again for it.
  return scenario.transport.reliability == "selective" ? record.retransmitted_packets
                                                       : record.naks_received + record.timeouts;
}

void DescribedPaths::describe(std::uint16_t source_port, diagnosis::PairEvidence& pair) const {
  pair.base_rtt_ns =
      static_cast<std::uint32_t>(ideal_.clock(pair.src, pair.dst).base_rtt().count / 1000);
  if (!config::has_one_path(scenario_) || source_port == 0) return;
  const auto way = [&](std::uint32_t from, std::uint32_t to, std::uint32_t port) {
    const std::uint32_t base = spec_.subnet_base + 1;
    return topology_.path(from, to, fabric::entropy_of(base + from, base + to, port));
  };
  pair.way = way(pair.src, pair.dst, source_port);
  // All control packets between two NICs, acknowledgements among them, have one port.
  pair.ack_way = way(pair.dst, pair.src, wire::kFirstSourcePort);
}

}  // namespace paceline::tools
