#include "cc/homa.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace paceline::cc {
namespace {

constexpr ParamSpec kHomaSpecs[] = {
    {"unscheduled", "BDP", 1, 0, 64, true, "bytes of every message that leave without a grant",
     "SIGCOMM'18, 3.2: RTTbytes; module: unsched_bytes 40,000 at 25 Gb/s"},
    {"max_incoming", "BDP", 10, 1, 256, true,
     "bytes that may be on their way to a receiver, unscheduled ones included",
     "module: max_incoming 400,000, ten times unsched_bytes"},
    {"overcommit", "senders", 8, 1, 256, true, "K: senders granted at the same time",
     "module: max_overcommit 8; SIGCOMM'18, 3.5: as many as scheduled priorities"},
    {"oldest_share", "1", 0.05, 0, 0.5, true,
     "share of granted bytes for the sender that has waited longest",
     "module: fifo_fraction 50 of 1000"},
    {"oldest_grant", "BDP", 1.25, 0.1, 16, true, "what that sender is granted at a time",
     "module: fifo_grant_increment 50,000 (before: 10,000)"},
    {"reclaim", "us", 200, 10, 1'000'000, true,
     "bytes that were sent and have not come for so long count as arrived", "own"},
    {"probe_limit", "REQUESTs", 8, 1, 64, true,
     "REQUESTs without an answer before the fallback algorithm takes over", "own, as cadence"},
    {"probe_max", "us", 1000, 10, 1'000'000, true, "longest interval of REQUESTs",
     "own, as cadence"},
};
static_assert(std::size(kHomaSpecs) == Homa::kParams);

}  // namespace

Homa::Params Homa::make_params(std::span<const double> values, const PortFacts& facts) {
  Params p;
  p.port = make_grant_port(facts, values[kProbeLimit], values[kProbeMax]);
  p.port.prompt_bytes = values[kUnscheduled] > 0 ? std::numeric_limits<std::uint64_t>::max() : 0;
  p.port.prefix_bytes = static_cast<std::uint32_t>(values[kUnscheduled] * p.port.bdp_bytes);
  if (p.port.prompt_bytes != 0) {
    p.port.prefix_bytes = std::max(p.port.prefix_bytes, p.port.packet_bytes);
  }
  p.incoming_bytes = static_cast<std::uint64_t>(values[kMaxIncoming] * p.port.bdp_bytes);
  p.overcommit = static_cast<std::uint32_t>(values[kOvercommit]);
  p.oldest_share = values[kOldestShare];
  p.oldest_bytes = std::max(static_cast<std::uint32_t>(values[kOldestGrant] * p.port.bdp_bytes),
                            p.port.packet_bytes);
  p.reclaim_ns = static_cast<std::int64_t>(values[kReclaim] * 1000);
  return p;
}

AlgorithmInfo Homa::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::homa;
  info.name = "homa";
  info.summary = "proactive: receivers grant the shortest first, several at a time (SIGCOMM 2018)";
  info.key = ContextKey::per_peer_class;
  info.echo = EcnEcho::cnp;  // for the fallback
  info.wants = kGrantWants;
  info.proactive = true;
  info.params = kHomaSpecs;
  return info;
}

}  // namespace paceline::cc
