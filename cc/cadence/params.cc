#include "cc/cadence/params.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "cc/cadence/cadence.h"

namespace paceline::cc {
namespace {

// Order of the table below; make_cadence_params reads values by these.
enum Index : std::size_t {
  kEta,
  kSmallMessage,
  kMaxActive,
  kLittleWeight,
  kHysteresis,
  kLeaseMin,
  kPathTarget,
  kFallbackRate,
  kProbeLimit,
  kParams
};

// Fixed, in base round trips or as a share of the link.
constexpr double kAllocRtts = 0.25;
constexpr double kRotationRtts = 64;
constexpr double kControlShare = 0.01;
constexpr std::uint32_t kMinGrantPart = 1024;
// The most packets that a window holds on every plane beyond what its rate carries in a round trip.
constexpr std::uint32_t kWindowPackets = 2;

constexpr std::string_view kDesign = "own design: docs/algorithms/cadence.md";

constexpr std::array<ParamSpec, kParams> kCadenceSpecs = {{
    {"eta", "1", 0.998, 0.80, 1.00, true, "share of the link that grants may add up to",
     "own design; UEC RCCC paces pulls at 0.99 (uet-htsim uec.cpp)"},
    {"small_message", "BDP", 0.75, 0, 4, true,
     "messages up to this are sent at once, without waiting for a grant",
     "SIRD (NSDI'25) and pHost (CoNEXT'15): 1 BDP unscheduled"},
    {"a_max", "channels", 128, 1, 4096, true, "channels granted at the same time", kDesign},
    {"little_weight", "1", 3, 1, 8, true,
     "share of a port, the sender's and the receiver's, of a channel with less than four BDP left, "
     "against one with more, where one has sixteen; 1 = all alike",
     "own design; the shortest first: SRPT as in Homa (SIGCOMM'18) and pFabric (SIGCOMM'13)"},
    {"hysteresis", "1", 0.04, 0, 0.5, true, "relative change of a share that is worth a GRANT",
     kDesign},
    {"lease_min", "us", 100, 10, 10'000, true,
     "shortest lease; longer when many channels are active (4 refresh intervals)", kDesign},
    {"path_target", "RTT", 4.0, 0, 64, true,
     "queueing delay that the path rate tolerates; 0 = delay is not looked at", kDesign},
    {"r_fallback", "1", 1.0 / 128, 1e-4, 1, true,
     "rate to which a sender without a valid grant decays, of the link", kDesign},
    {"probe_limit", "REQUESTs", 8, 1, 64, true,
     "REQUESTs without an answer before the fallback algorithm takes over", kDesign},
}};

constexpr std::uint32_t kWants = signal_bit(Signal::message) | signal_bit(Signal::idle) |
                                 signal_bit(Signal::share) | signal_bit(Signal::grant) |
                                 signal_bit(Signal::nack) | signal_bit(Signal::timeout) |
                                 kWantsRoundTrips;

constexpr AlgorithmInfo kInfo = {
    .id = AlgorithmId::cadence,
    .name = "cadence",
    .summary = "proactive: the receiving port grants rates before the network can queue",
    .key = ContextKey::per_peer_class,
    .echo = EcnEcho::cnp,  // for the fallback; Cadence itself does not look at marks
    .wants = kWants,
    .proactive = true,
    .over_planes = true,
    .params = kCadenceSpecs,
    .profiles = {},
};

std::uint32_t share_of(std::uint32_t value, double share) {
  return static_cast<std::uint32_t>(share * value);
}

std::int64_t round_trips(std::int64_t rtt_ns, double count) {
  return static_cast<std::int64_t>(count * static_cast<double>(rtt_ns));
}

}  // namespace

std::span<const ParamSpec> cadence_param_specs() { return kCadenceSpecs; }
const AlgorithmInfo& cadence_info() { return kInfo; }

CadenceParams make_cadence_params(std::span<const double> values, const PortFacts& facts) {
  assert(values.size() == kParams);
  assert(facts.link_rate.bps >= 1'000'000 && facts.mtu_bytes > 0 && facts.base_rtt_ns > 0);
  assert(facts.full_packet_bytes > facts.mtu_bytes);

  CadenceParams p;
  p.link_mbps = static_cast<std::uint32_t>(facts.link_rate.bps / 1'000'000);
  p.mtu_bytes = facts.mtu_bytes;
  p.packet_bytes = facts.full_packet_bytes;
  p.overhead_bytes = facts.full_packet_bytes - facts.mtu_bytes;
  p.slack_bytes = kWindowPackets * facts.full_packet_bytes * facts.planes;
  p.rtt_ns = facts.base_rtt_ns;
  p.bdp_bytes = static_cast<std::uint32_t>(bytes_at(p.link_mbps, p.rtt_ns));

  p.eta_mbps = share_of(p.link_mbps, values[kEta]);
  p.alloc_ns = std::max<std::int64_t>(1, round_trips(p.rtt_ns, kAllocRtts));
  // A third of the control share each for GRANTs, for their echoes and for refreshing REQUESTs.
  const double control_mbps = kControlShare * p.link_mbps / 3;
  p.control_ns = static_cast<std::int64_t>(kControlWireBytes * 8000.0 / control_mbps) + 1;
  p.lease_min_ns = static_cast<std::int64_t>(values[kLeaseMin]) * 1000;
  p.max_active = static_cast<std::uint32_t>(values[kMaxActive]);
  // A turn that ends before all channels can have been told of it gives nobody anything.
  p.rotation_ns =
      std::max(round_trips(p.rtt_ns, kRotationRtts), std::int64_t{p.max_active} * p.control_ns);
  p.min_grant_mbps = std::max(1U, p.link_mbps / kMinGrantPart);
  p.little_weight = static_cast<std::uint32_t>(values[kLittleWeight]);
  p.hysteresis = values[kHysteresis];

  p.small_bytes = share_of(p.bdp_bytes, values[kSmallMessage]);
  p.most_start_bytes = std::max({p.small_bytes, p.bdp_bytes, p.packet_bytes});
  p.fallback_mbps = std::max(1U, share_of(p.link_mbps, values[kFallbackRate]));
  const std::uint64_t packet_per_8_rtt =
      std::uint64_t{p.packet_bytes} * 1000 / static_cast<std::uint64_t>(p.rtt_ns);
  p.path_min_mbps = std::max(
      {1U, p.link_mbps / 1024,
       static_cast<std::uint32_t>(std::min<std::uint64_t>(packet_per_8_rtt, p.link_mbps))});
  p.path_target_ns = round_trips(p.rtt_ns, values[kPathTarget]);
  p.probe_limit = static_cast<std::uint32_t>(values[kProbeLimit]);
  return p;
}

}  // namespace paceline::cc
