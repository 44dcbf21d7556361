//   [UE]  ultraethernet/uet-htsim, htsim/sim: uec.cpp (receiver-based control),
//   oversubscribed_cc.cpp [EQDS] Olteanu et al., An edge-queued datagram service for all datacenter
//   traffic, NSDI'22
#include "cc/eqds/params.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "cc/grants/channel_units.h"

namespace paceline::cc {
namespace {

enum EqdsIndex : std::size_t {
  kEqdsPullRate,
  kEqdsPullPackets,
  kEqdsFirstWindow,
  kEqdsRegain,
  kEqdsChargeStart,
  kEqdsMaxCredit,
  kEqdsIdleCredit,
  kEqdsForeignMost,
  kEqdsEcnFeedback,
  kEqdsEcnTarget,
  kEqdsLeastPull,
  kEqdsFallbackRate,
  kEqdsProbeLimit,
  kEqdsProbeMax,
  kEqdsParams
};

constexpr std::array<ParamSpec, kEqdsParams> kEqdsSpecs = {{
    {"pull_rate", "1", 0.99, 0.5, 1, true, "pace of the receiver's pulls, of the link",
     "UE uec.cpp pull pacer, rate modifier"},
    {"pull_packets", "packets", 4, 1, 64, true, "credit of one pull, in full packets",
     "UE uec.cpp: 4 MTU"},
    {"first_window", "BDP", 1.5, 0, 8, true,
     "sent speculatively, before any credit has come; at least a packet unless it is 0",
     "UE uec.cpp: maxwnd 1.5 BDP"},
    {"regain", "RTT", 8, 1, 1000, true,
     "time in which a speculative window that was used is earned again", "own"},
    {"charge_start", "flag", 1, 0, 1, true,
     "1: pulls wait until speculative bytes have passed the port; 0: they begin at once", "own"},
    {"max_credit", "BDP", 1.5, 0.25, 16, true,
     "unused credit that one sender may hold, times its share of its uplink",
     "UE uec.cpp: pull target at most maxwnd / active sources"},
    {"idle_credit", "BDP", 1, 0, 8, true,
     "credit beyond demand for recently active senders, while no sender waits",
     "UE uec.cpp: slow list, 1 BDP"},
    {"foreign_most", "1", 0.5, 0, 0.95, true,
     "share of the port that traffic without credit can take away from pulls", "own"},
    {"ecn_feedback", "flag", 1, 0, 1, true,
     "1: marks and trims of pulled data slow the pacer down (oversubscribed cores)",
     "UE oversubscribed_cc.cpp"},
    {"ecn_target", "1", 0.3, 0, 1, true, "share of packets marked or trimmed that is left alone",
     "UE oversubscribed_cc.cpp"},
    {"least_pull", "1", 0.1, 0.01, 1, true, "the slowest pace, of pull_rate",
     "UE oversubscribed_cc.cpp: 0.9 / oversubscription"},
    {"r_fallback", "1", 1.0 / 128, 1e-4, 1, true,
     "rate with which the fallback algorithm begins, of the link", "own"},
    {"probe_limit", "REQUESTs", 8, 1, 64, true,
     "REQUESTs without an answer before the fallback algorithm takes over", "own"},
    {"probe_max", "us", 1000, 10, 1'000'000, true, "longest interval of unanswered REQUESTs",
     "own"},
}};

constexpr std::array<ProfileValue, 4> kUecValues = {
    {{"charge_start", 0, 0}, {"foreign_most", 0, 0}, {"first_window", 1.5, 0}, {"regain", 1, 0}}};

constexpr std::array<Profile, 1> kEqdsProfiles = {{
    {"uec", "UE uec.cpp: pulls begin at once, whatever else comes in", kUecValues},
}};

constexpr AlgorithmInfo kEqdsInfo = {
    .id = AlgorithmId::eqds,
    .name = "eqds",
    .summary =
        "receiver's credits, pulled at line rate; queues stay at the senders (EQDS, UEC RCCC)",
    .key = ContextKey::per_peer_class,
    .echo = EcnEcho::cnp,  // for the fallback; the receiver itself counts marks
    .wants = signal_bit(Signal::message) | signal_bit(Signal::idle) | signal_bit(Signal::share) |
             signal_bit(Signal::grant) | signal_bit(Signal::nack) | signal_bit(Signal::timeout),
    .proactive = true,
    .over_planes = true,
    .params = kEqdsSpecs,
    .profiles = kEqdsProfiles,
};

}  // namespace

const AlgorithmInfo& eqds_info() { return kEqdsInfo; }

EqdsParams make_eqds_params(std::span<const double> values, const PortFacts& facts) {
  assert(values.size() == kEqdsParams);
  assert(facts.link_rate.bps >= 1'000'000 && facts.mtu_bytes > 0 && facts.base_rtt_ns > 0);
  assert(facts.full_packet_bytes > facts.mtu_bytes);
  EqdsParams p;
  p.link_mbps = static_cast<std::uint32_t>(facts.link_rate.bps / 1'000'000);
  p.mtu_bytes = facts.mtu_bytes;
  p.packet_bytes = facts.full_packet_bytes;
  p.overhead_bytes = facts.full_packet_bytes - facts.mtu_bytes;
  p.rtt_ns = facts.base_rtt_ns;
  p.bdp_bytes = static_cast<std::uint32_t>(bytes_at(p.link_mbps, p.rtt_ns));
  const auto of = [](double share, std::uint32_t whole) {
    return static_cast<std::uint32_t>(share * whole);
  };
  p.pull_mbps = std::max(1U, of(values[kEqdsPullRate], p.link_mbps));
  p.pull_bytes = std::max(p.packet_bytes, of(values[kEqdsPullPackets], p.packet_bytes));
  p.first_window_bytes = values[kEqdsFirstWindow] > 0
                             ? std::max(p.packet_bytes, of(values[kEqdsFirstWindow], p.bdp_bytes))
                             : 0;
  p.regain_ns = static_cast<std::int64_t>(values[kEqdsRegain] * static_cast<double>(p.rtt_ns));
  p.charge_start = values[kEqdsChargeStart] != 0;
  p.max_credit_bytes = of(values[kEqdsMaxCredit], p.bdp_bytes);
  p.idle_credit_bytes = of(values[kEqdsIdleCredit], p.bdp_bytes);
  p.foreign_most = values[kEqdsForeignMost];
  p.ecn_feedback = values[kEqdsEcnFeedback] != 0;
  p.ecn_target = values[kEqdsEcnTarget];
  p.least_pull = values[kEqdsLeastPull];
  p.fallback_mbps = std::max(1U, of(values[kEqdsFallbackRate], p.link_mbps));
  p.probe_limit = static_cast<std::uint32_t>(values[kEqdsProbeLimit]);
  p.request_max_ns = static_cast<std::uint32_t>(values[kEqdsProbeMax] * 1000);
  return p;
}

}  // namespace paceline::cc
