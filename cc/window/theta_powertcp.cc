//   [PT]  inet-tub/ns3-datacenter, simulator/ns-3.39/src/point-to-point/model/rdma-hw.cc,
//         UpdateRatePower with PowerTCPdelay: the authors' simulator.
// Values marked (r) are recalled from the paper and were not read again there.
#include "cc/window/theta_powertcp.h"

#include <algorithm>
#include <iterator>

namespace paceline::cc {
namespace {

constexpr ParamSpec kThetaSpecs[] = {
    {"gamma", "1", 0.9, 0.001, 1, true, "weight of the newest window", "NSDI'22, section 3.3 (r)"},
    {"flows", "1", 10, 1, 100'000, true,
     "N: flows expected to share the host's port; beta is the unloaded path's bytes divided by it",
     "NSDI'22, section 3.3: beta = HostBw x tau / N; N is own"},
    {"base_rtt_us", "us", 0, 0, 10'000, true,
     "tau; 0 = the unloaded path's, or the least sample if that is less",
     "NSDI'22, algorithm 2; the least sample: PT"},
    {"rtt_slack", "1", 1, 1, 2, true, "tau is taken to be so many times itself in the power",
     "own; PT: 1.05"},
    {"gradient_floor", "1", 0.5, 0.01, 1, true, "lower bound of (gradient + 1)", "PT"},
    {"loss_decrease", "1", 0.5, 0.01, 0.99, true, "share of the window that a loss takes", "own"},
    {"min_window", "packets", 0.01, 0.00001, 100, true, "lower bound of the window", "own"},
    {"max_window", "packets", 0, 0, 1e6, true,
     "upper bound of the window, and that of a new flow; 0 = what fills the unloaded path",
     "NSDI'22, algorithm 1: cwnd_init = HostBw x tau"},
};
static_assert(std::size(kThetaSpecs) == ThetaPowerTcp::kParams);

constexpr ProfileValue kThetaAuthors[] = {
    {"gamma", 0.7},
    {"rtt_slack", 1.05},
    {"gradient_floor", 0.5},
};

constexpr Profile kThetaProfiles[] = {
    {"authors-simulator",
     "inet-tub/ns3-datacenter, rdma-hw.cc, PowerTCPdelay; beta (150 Mb/s there) is left as is",
     kThetaAuthors},
};

double tau_ns(const ThetaPowerTcp::State& s, const ThetaPowerTcp::Params& p) {
  if (!p.measured || s.least_rtt_ns == 0) return p.base_ns;
  return std::min(p.base_ns, static_cast<double>(s.least_rtt_ns));
}

// Algorithm 2, NormPower: what one sample says, filtered over a round trip.
void take_rtt(ThetaPowerTcp::State& s, const ThetaPowerTcp::Params& p, Nanos now,
              std::uint32_t rtt_ns) {
  s.least_rtt_ns = s.least_rtt_ns == 0 ? rtt_ns : std::min(s.least_rtt_ns, rtt_ns);
  const auto elapsed = static_cast<double>(now.count - s.sampled.count);
  if (s.rtt_ns != 0 && elapsed <= 0) return;  // of one instant the first counts
  if (s.rtt_ns != 0) {
    const double gradient = (static_cast<double>(rtt_ns) - s.rtt_ns) / elapsed;
    const double tau = tau_ns(s, p);
    const double current = std::max(gradient + 1, p.gradient_floor);
    const double power = current * rtt_ns / (tau * p.rtt_slack);
    const double weight = std::min(elapsed, tau) / tau;
    s.power += (power - s.power) * weight;
  }
  s.rtt_ns = rtt_ns;
  s.sampled = now;
}

void update_window(ThetaPowerTcp::State& s, const ThetaPowerTcp::Params& p) {
  s.window = p.gamma * (s.window / s.power + p.beta) + (1 - p.gamma) * s.window;
}

void cut_for_loss(ThetaPowerTcp::State& s, const ThetaPowerTcp::Params& p, Nanos now) {
  const double wait = s.rtt_ns != 0 ? s.rtt_ns : p.base_ns;
  if (static_cast<double>(now.count - s.last_loss.count) < wait) return;
  s.window *= 1 - p.loss_decrease;
  s.last_loss = now;
}

}  // namespace

ThetaPowerTcp::Params ThetaPowerTcp::make_params(std::span<const double> values,
                                                 const PortFacts& facts) {
  Params p;
  p.path = window_path(facts);
  p.gamma = values[kGamma];
  p.measured = values[kBaseRttUs] == 0;
  p.base_ns = p.measured ? p.path.base_rtt_ns : values[kBaseRttUs] * 1000;
  p.base_ns = std::max(p.base_ns, 1.0);
  p.rtt_slack = values[kRttSlack];
  p.gradient_floor = values[kGradientFloor];
  p.loss_decrease = values[kLossDecrease];
  const double packet = p.path.packet_bytes;
  p.min_window = values[kMinWindow] * packet;
  p.max_window = values[kMaxWindow] > 0 ? values[kMaxWindow] * packet : p.path.bdp_bytes;
  p.max_window = std::max(p.max_window, p.min_window);
  p.beta = p.path.bdp_bytes / values[kFlows];
  return p;
}

void ThetaPowerTcp::on_event(State& s, const Params& p, const Event& e, Decision& d) {
  switch (e.signal) {
    case Signal::start:
      d = Decision{};
      s = State{};
      s.power = 1;
      s.window = start_window(e, p.path, p.max_window, p.min_window);
      s.last_loss = e.now - Nanos{1'000'000'000};  // long ago
      s.round.begin(e);
      break;
    case Signal::ack:
      if (e.rtt_ns != 0) take_rtt(s, p, e.now, e.rtt_ns);
      if (s.rtt_ns != 0 && s.round.over(e)) update_window(s, p);
      break;
    case Signal::nack:
      if (e.lost_bytes != 0) cut_for_loss(s, p, e.now);
      break;
    case Signal::timeout:
      cut_for_loss(s, p, e.now);
      break;
    case Signal::tick:  // the values may be others
      break;
    default:
      return;
  }
  s.window = std::clamp(s.window, p.min_window, p.max_window);
  // A window below a packet is paced by the round trip that there is; above, as in the paper, over
  // the unloaded one, so that a standing queue drains.
  const double rtt = s.window < p.path.packet_bytes && s.rtt_ns != 0 ? s.rtt_ns : tau_ns(s, p);
  decide_window(d, s.window, p.path, rtt, Pacing::by_round_trip);
}

AlgorithmInfo ThetaPowerTcp::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::theta_powertcp;
  info.name = "theta-powertcp";
  info.summary = "power by round trip and gradient, window per flow (NSDI 2022)";
  info.echo = EcnEcho::none;
  info.wants = signal_bit(Signal::ack) | signal_bit(Signal::nack) | signal_bit(Signal::timeout);
  info.params = kThetaSpecs;
  info.profiles = kThetaProfiles;
  return info;
}

}  // namespace paceline::cc
