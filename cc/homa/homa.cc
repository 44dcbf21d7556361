#include "cc/homa/homa.h"

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
     "bytes sent that have not arrived after this time count as arrived", "own"},
    {"probe_limit", "REQUESTs", 8, 1, 64, true,
     "REQUESTs without an answer before the fallback algorithm takes over", "own, as cadence"},
    {"probe_max", "us", 1000, 10, 1'000'000, true, "longest interval of REQUESTs",
     "own, as cadence"},
    {"priorities", "levels", 0, 0, HomaPriorities::kMost, true,
     "traffic classes that data uses, below that of control packets; 0: the queue pair's own alone",
     "SIGCOMM'18, 3.4: 8 with that of control packets; module: num_priorities 8"},
    {"unscheduled_levels", "levels", 3, 0, 4, true,
     "of these, the upper ones: for bytes without a grant; one level at least is for the others",
     "module: 4 of 8; SIGCOMM'18, 3.4: as the bytes of both kinds"},
    {"cutoff_1", "bytes", 200, 0, 1e9, true,
     "messages up to this have the highest level for what they send without a grant",
     "module: unsched_cutoffs"},
    {"cutoff_2", "bytes", 2800, 0, 1e9, true,
     "messages up to this the next; likewise, as far as there are levels",
     "module: unsched_cutoffs"},
    {"cutoff_3", "bytes", 15'000, 0, 1e9, true,
     "messages up to this the third; the last level takes all that are longer",
     "module: unsched_cutoffs"},
};
static_assert(std::size(kHomaSpecs) == Homa::kParams);

constexpr ProfileValue kHomaAllLevels[] = {{"priorities", HomaPriorities::kMost}};

constexpr Profile kHomaProfiles[] = {
    {"priorities", "SIGCOMM'18, 3.4; module: cutoffs of its defaults", kHomaAllLevels},
};

HomaPriorities priorities_of(std::span<const double> values, const GrantPort& port) {
  HomaPriorities p;
  p.levels = static_cast<std::uint8_t>(values[Homa::kPriorities]);
  if (p.levels == 0) return p;
  p.unscheduled = std::min(static_cast<std::uint8_t>(values[Homa::kUnscheduledLevels]),
                           static_cast<std::uint8_t>(p.levels - 1));
  std::uint64_t least = 0;
  for (std::size_t i = 0; i < p.cutoffs.size(); ++i) {
    least = std::max(least, static_cast<std::uint64_t>(values[Homa::kCutoff1 + i]));
    p.cutoffs[i] = least;
  }
  // Payload bytes of the prefix on the wire.
  p.prefix_bytes = std::uint64_t{port.prefix_bytes} * port.mtu_bytes / port.packet_bytes;
  return p;
}

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
  p.priorities = priorities_of(values, p.port);
  return p;
}

std::uint8_t Homa::packet_class(const State& state, const Params& params,
                                std::uint64_t message_bytes, std::uint64_t offset) {
  const HomaPriorities& p = params.priorities;
  if (p.unscheduled > 0 && offset < p.prefix_bytes) return p.class_of(p.level_of(message_bytes));
  // Without a priority from the receiver, the lowest level.
  const unsigned level = state.priority == 0 ? 0U : state.priority - 1U;
  return p.class_of(std::min<unsigned>(level, p.scheduled() - 1U));
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
  info.profiles = kHomaProfiles;
  return info;
}

}  // namespace paceline::cc
