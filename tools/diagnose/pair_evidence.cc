#include "tools/diagnose/pair_evidence.h"

#include <algorithm>

#include "dataplane/fabric/wire/host_intake.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline::tools {

std::uint64_t losses_of(const config::Scenario& scenario,
                        const telemetry::QueuePairRecord& record) {
  // Under go-back-N a loss is reported once, however many packets are sent again for it.
  return scenario.transport.reliability == "selective" ? record.retransmitted_packets
                                                       : record.naks_received + record.timeouts;
}

// Empty: switches choose the path.
std::vector<std::uint32_t> DescribedPaths::only_way(std::uint32_t from, std::uint32_t to) const {
  std::vector<std::uint32_t> way = topology_.path(from, to);
  const bool chosen = std::any_of(way.begin(), way.end(), [&](std::uint32_t link) {
    const std::uint32_t at = topology_.far_switch(link);
    return at != fabric::Topology::kNoLink && topology_.next_hop(at, to).count != 1;
  });
  if (chosen) way.clear();
  return way;
}

void DescribedPaths::describe(std::uint16_t source_port, diagnosis::PairEvidence& pair,
                              bool hash_known) const {
  pair.base_rtt_ns =
      static_cast<std::uint32_t>(ideal_.clock(pair.src, pair.dst).base_rtt().count / 1000);
  if (!config::has_one_path(scenario_)) return;
  if (!hash_known) {
    pair.way = only_way(pair.src, pair.dst);
    pair.ack_way = only_way(pair.dst, pair.src);
    return;
  }
  if (source_port == 0) return;
  const auto way = [&](std::uint32_t from, std::uint32_t to, std::uint32_t port) {
    const std::uint32_t base = spec_.subnet_base + 1;
    return topology_.path(from, to, fabric::entropy_of(base + from, base + to, port));
  };
  pair.way = way(pair.src, pair.dst, source_port);
  // All control packets between two NICs, acknowledgements among them, have one port.
  pair.ack_way = way(pair.dst, pair.src, wire::kFirstSourcePort);
}

}  // namespace paceline::tools
