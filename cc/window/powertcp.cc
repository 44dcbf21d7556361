//   [PT]  inet-tub/ns3-datacenter @6ddb4a4, simulator/ns-3.39/src/point-to-point/model/rdma-hw.cc:
//         the authors' simulator.
// Values marked (r) are recalled from the paper and were not read again there.
#include "cc/window/powertcp.h"

#include <algorithm>
#include <iterator>

namespace paceline::cc {
namespace {

constexpr ParamSpec kPowerSpecs[] = {
    {"gamma", "1", 0.9, 0.001, 1, true, "weight of the newest window",
     "NSDI'22, section 3.3 (r); PT"},
    {"flows", "1", 10, 1, 100'000, true,
     "N: flows expected to share the host's port; beta is the unloaded path's bytes divided by it",
     "NSDI'22, section 3.3: beta = HostBw x tau / N; N is own"},
    {"base_rtt_us", "us", 0, 0, 10'000, true, "tau; 0 = the unloaded path's, of the longest",
     "NSDI'22, algorithm 1"},
    {"loss_decrease", "1", 0.5, 0.01, 0.99, true, "share of the window that a loss takes", "own"},
    {"min_rate_mbps", "Mb/s", 10, 5, 100'000, true,
     "lower bound of window / tau; slower flows hear too rarely of counters that wrap", "own"},
    {"max_window", "packets", 0, 0, 1e6, true,
     "upper bound of the window, and that of a new flow; 0 = what fills the unloaded path",
     "NSDI'22, algorithm 1: cwnd_init = HostBw x tau"},
};
static_assert(std::size(kPowerSpecs) == PowerTcp::kParams);

// beta of the simulator is 150 Mb/s whatever the link: at 100 Gb/s a 667th of the path.
constexpr ProfileValue kPowerAuthors[] = {
    {"gamma", 0.9},
    {"flows", 667},
};
constexpr Profile kPowerProfiles[] = {
    {"authors-simulator", "PT: gamma 0.9; beta 150 Mb/s, of a 100 Gb/s link", kPowerAuthors},
};

// A path that idles has no power at all; windows are bounded above anyway.
constexpr double kLeastPower = 1e-3;

// Algorithm 1, NormPower. False: this acknowledgement tells nothing.
bool take_power(PowerTcp::State& s, const PowerTcp::Params& p, const Event& e) {
  double most = -1;
  double ns = 0;
  const bool measured = s.links.take(e, IntUnits{}, [&](const LinkSpan& link) {
    const double full = link.rate * p.base_ns;
    const double current = (link.queue - link.queue_before + link.sent) / link.ns;
    const double voltage = link.queue + full;
    const double power = std::max(current, 0.0) * voltage / (link.rate * full);
    if (power <= most) return;
    most = power;
    ns = link.ns;
  });
  if (!measured) return false;
  const double weight = std::min(ns, p.base_ns) / p.base_ns;
  s.power = std::max(s.power + (most - s.power) * weight, kLeastPower);
  return true;
}

void power_loss(PowerTcp::State& s, const PowerTcp::Params& p, Nanos now) {
  if (static_cast<double>(now.count - s.last_loss.count) < p.base_ns) return;
  s.window *= 1 - p.loss_decrease;
  s.old_window = s.window;
  s.last_loss = now;
}

}  // namespace

PowerTcp::Params PowerTcp::make_params(std::span<const double> values, const PortFacts& facts) {
  Params p;
  p.path = window_path(facts);
  p.gamma = values[kGamma];
  p.base_ns = values[kBaseRttUs] > 0 ? values[kBaseRttUs] * 1000 : p.path.base_rtt_ns;
  p.loss_decrease = values[kLossDecrease];
  const double packet = p.path.packet_bytes;
  const double fills =
      std::max(static_cast<double>(p.path.link_rate.bps) * p.base_ns * 1e-9 / 8, packet);
  p.min_window = values[kMinRate] * p.base_ns / 8000;
  p.max_window = values[kMaxWindow] > 0 ? values[kMaxWindow] * packet : fills;
  p.max_window = std::max(p.max_window, p.min_window);
  p.beta = fills / values[kFlows];
  return p;
}

void PowerTcp::on_event(State& s, const Params& p, const Event& e, Decision& d) {
  bool round_over = false;
  switch (e.signal) {
    case Signal::start:
      d = Decision{};
      s = State{};
      s.power = 1;
      s.window = start_window(e, p.path, p.max_window, p.min_window);
      s.old_window = s.window;
      s.last_loss = e.now - Nanos{1'000'000'000};  // long ago
      s.round.begin(e);
      break;
    case Signal::ack:
      if (!take_power(s, p, e)) return;
      s.window = p.gamma * (s.old_window / s.power + p.beta) + (1 - p.gamma) * s.window;
      round_over = s.round.over(e);
      break;
    case Signal::nack:
      if (e.lost_bytes != 0) power_loss(s, p, e.now);
      break;
    case Signal::timeout:
      power_loss(s, p, e.now);
      break;
    case Signal::tick:  // the values may be others
      break;
    default:
      return;
  }
  s.window = std::clamp(s.window, p.min_window, p.max_window);
  if (round_over) s.old_window = s.window;
  decide_window(d, s.window, p.path, p.base_ns, Pacing::by_round_trip);
}

AlgorithmInfo PowerTcp::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::powertcp;
  info.name = "powertcp";
  info.summary = "power of the fullest link by telemetry, window per flow (NSDI 2022)";
  info.echo = EcnEcho::none;
  info.wants = signal_bit(Signal::ack) | signal_bit(Signal::nack) | signal_bit(Signal::timeout) |
               kWantsTelemetry;
  info.params = kPowerSpecs;
  info.profiles = kPowerProfiles;
  return info;
}

}  // namespace paceline::cc
