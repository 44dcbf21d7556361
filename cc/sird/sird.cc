#include "cc/sird/sird.h"

#include <algorithm>
#include <iterator>

namespace paceline::cc {
namespace {

constexpr ParamSpec kSirdSpecs[] = {
    {"bucket", "BDP", 1.5, 0.5, 64, true,
     "B: credit outstanding at a receiver, unscheduled bytes included",
     "NSDI'25: 1.5 BDP; with BDP + SThr at least, the downlink is used whole"},
    {"sender_bucket", "BDP", 1, 0.1, 64, true, "most of SB: credit outstanding at one sender",
     "NSDI'25: 1 BDP; simulator: r2p2_elet_srpb"},
    {"least_bucket", "BDP", 0.1, 0.001, 1, true, "least of SB, one packet at least",
     "simulator: r2p2_ecn_min_mul, a note of 0.1"},
    {"sender_threshold", "BDP", 0.5, 0.01, 64, true,
     "SThr: a sender says csn when more credit than this has piled up there", "NSDI'25: 0.5 BDP"},
    {"unscheduled", "BDP", 1, 0, 64, true,
     "UnschT: messages up to this begin without credit, with 1 BDP at most", "NSDI'25: 1 BDP"},
    {"gain", "1", 0.1, 0.0001, 1, true,
     "g of both loops: weight of the newest window in the share of marks",
     "simulator: r2p2_ce_new_weight, a note of 0.1"},
    {"credit_rate", "1", 0.98, 0.5, 1, true, "speed at which credit is handed out, of the link",
     "NSDI'25: slightly below line rate"},
    {"credit_unit", "packets", 1, 1, 64, true, "credit of one GRANT",
     "NSDI'25: a CREDIT packet per data packet"},
    {"smallest_first", "flag", 0, 0, 1, true,
     "credit goes to the sender with the least remaining demand; 0: in turns",
     "NSDI'25: a policy of the receiver, both are evaluated"},
    {"reclaim", "us", 200, 10, 1'000'000, true,
     "bytes sent that have not arrived after this time count as arrived", "own"},
    {"probe_limit", "REQUESTs", 8, 1, 64, true,
     "REQUESTs without an answer before the fallback algorithm takes over", "own, as cadence"},
    {"probe_max", "us", 1000, 10, 1'000'000, true, "longest interval of REQUESTs",
     "own, as cadence"},
};
static_assert(std::size(kSirdSpecs) == Sird::kParams);

constexpr ProfileValue kSirdSmallest[] = {{"smallest_first", 1}};
constexpr ProfileValue kSirdScheduled[] = {{"unscheduled", 0}};

constexpr Profile kSirdProfiles[] = {
    {"srpt", "NSDI'25: the receivers' policy of the evaluation at scale", kSirdSmallest},
    {"scheduled", "NSDI'25: UnschT 0, nothing is sent without credit", kSirdScheduled},
};

std::uint32_t of_path(const GrantPort& port, double bdps) {
  return std::max(static_cast<std::uint32_t>(bdps * port.bdp_bytes), port.packet_bytes);
}

}  // namespace

Sird::Params Sird::make_params(std::span<const double> values, const PortFacts& facts) {
  Params p;
  p.port = make_grant_port(facts, values[kProbeLimit], values[kProbeMax]);
  p.port.prompt_bytes = static_cast<std::uint64_t>(values[kUnscheduled] * p.port.bdp_bytes);
  p.port.prefix_bytes = p.port.bdp_bytes;
  p.bucket_bytes = of_path(p.port, values[kBucket]);
  p.sender_bucket_bytes = of_path(p.port, values[kSenderBucket]);
  p.least_bucket_bytes = std::min(of_path(p.port, values[kLeastBucket]), p.sender_bucket_bytes);
  p.threshold_bytes = static_cast<std::uint32_t>(values[kThreshold] * p.port.bdp_bytes);
  p.unit_bytes = static_cast<std::uint32_t>(values[kUnit]) * p.port.packet_bytes;
  p.gain = values[kGain];
  p.credit_rate = values[kCreditRate];
  p.smallest_first = values[kSmallestFirst] != 0;
  p.reclaim_ns = static_cast<std::int64_t>(values[kReclaim] * 1000);
  return p;
}

void Sird::on_event(State& s, const Params& p, const Event& e, Decision& d) {
  if (e.signal == Signal::share) s.congested = e.share->congested;
  s.on_event(p.port, e, d);
}

// The credit of the last GRANT is being used; older unused credit has accumulated.
UplinkWant Sird::uplink_want(const State& s, const Params& p) {
  UplinkWant want;
  const std::uint64_t unused = s.phase == State::Phase::open ? s.unused() : 0;
  want.credit_bytes = static_cast<std::uint32_t>(unused > p.unit_bytes ? unused - p.unit_bytes : 0);
  return want;
}

AlgorithmInfo Sird::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::sird;
  info.name = "sird";
  info.summary = "proactive: receivers hand out credit, senders say what they can use (NSDI 2025)";
  info.key = ContextKey::per_peer_class;
  info.echo = EcnEcho::cnp;  // for the fallback; the receiver counts marks itself
  info.wants = kGrantWants | signal_bit(Signal::share);
  info.proactive = true;
  info.params = kSirdSpecs;
  info.profiles = kSirdProfiles;
  return info;
}

}  // namespace paceline::cc
