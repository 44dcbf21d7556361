//   [HR]  alibaba-edu/High-Precision-Congestion-Control @9f4be2a, simulation/run.py: the authors'
//         simulator.
//   [HC]  the same repository, simulation/src/network/utils/int-header.h.
// Values marked (r) are recalled from the paper and were not read again there.
#include "cc/window/hpcc.h"

#include <algorithm>
#include <iterator>

namespace paceline::cc {
namespace {

// Wire bytes of the records in a full packet, beyond PortFacts::full_packet_bytes.
constexpr double kRecordsOnWire = 42;

constexpr ParamSpec kHpccSpecs[] = {
    {"eta", "1", 0.95, 0.1, 1, true, "utilisation that links are kept at",
     "SIGCOMM'19, section 3.3; HR: u_tgt"},
    {"max_stage", "count", 5, 0, 1000, true,
     "round trips of additive increase before the next multiplicative one",
     "SIGCOMM'19, section 3.3; HR: 0"},
    {"additive_increase_mbps", "Mb/s", 50, 0, 100'000, true,
     "W_AI, as a rate: added to the window is what it sends in T",
     "SIGCOMM'19, section 5.1: 80 bytes at T = 13 us (r); HR: 40"},
    {"base_rtt_us", "us", 0, 0, 10'000, true, "T; 0 = the unloaded path's, of the longest",
     "SIGCOMM'19, section 3.2; HR: GLOBAL_T"},
    {"min_rate_mbps", "Mb/s", 10, 5, 100'000, true,
     "lower bound of window / T; slower flows hear too rarely of counters that wrap",
     "own; HR: 1000"},
    {"loss_decrease", "1", 0.5, 0.01, 0.99, true, "share of the window that a loss takes", "own"},
    {"int_multi", "1", 0, 0, 256, true,
     "bytes that links have sent are read in whole units of 128 times this, queues in units of 80 "
     "times this; 0: as records have them, 64 and 16",
     "HC, int-header.h; HR: link / 25 Gb/s"},
    {"payload_window", "flag", 0, 0, 1, true,
     "1: the window counts payload, so that on the unloaded path it leaves sending to the rate",
     "HC, rdma-queue-pair.cc: GetOnTheFly"},
};
static_assert(std::size(kHpccSpecs) == Hpcc::kParams);

constexpr ProfileValue kHpccPaper[] = {
    {"eta", 0.95},
    {"max_stage", 5},
    {"additive_increase_mbps", 50, 100e9},
};
constexpr ProfileValue kHpccSimulator[] = {
    {"eta", 0.95},           {"max_stage", 0},       {"additive_increase_mbps", 10, 25e9},
    {"min_rate_mbps", 1000}, {"int_multi", 1, 25e9}, {"payload_window", 1},
};
constexpr Profile kHpccProfiles[] = {
    {"paper", "SIGCOMM'19, section 5.1 (r); the increase grows with the link", kHpccPaper},
    {"simulator", "HR, run.py: --cc hpcc --utgt 95 --mi 0 --hpai as it comes", kHpccSimulator},
};

// Algorithm 1, MeasureInflight. False: this acknowledgement tells nothing.
bool measure(Hpcc::State& s, const Hpcc::Params& p, const Event& e) {
  double fullest = -1;
  double ns = 0;
  const bool measured = s.links.take(e, p.units, [&](const LinkSpan& link) {
    const double queue = std::min(link.queue_before, link.queue);
    const double u = queue / (link.rate * p.base_ns) + link.sent / (link.ns * link.rate);
    if (u <= fullest) return;
    fullest = u;
    ns = link.ns;
  });
  if (!measured) return false;
  const double weight = std::min(ns, p.base_ns) / p.base_ns;
  s.utilisation += (fullest - s.utilisation) * weight;
  return true;
}

// Algorithm 1, ComputeWind.
void compute_window(Hpcc::State& s, const Hpcc::Params& p, bool round_over) {
  const double full = s.utilisation / p.eta;
  const bool multiply = full >= 1 || s.stage >= p.max_stage;
  // An idle path would divide by nothing; whatever comes out is bounded above.
  s.window = multiply ? s.reference / std::max(full, 1e-3) : s.reference;
  s.window = std::clamp(s.window + p.increase, p.min_window, p.max_window);
  if (!round_over) return;
  s.stage = multiply ? 0 : s.stage + 1;
  s.reference = s.window;
}

void hpcc_loss(Hpcc::State& s, const Hpcc::Params& p, Nanos now) {
  if (static_cast<double>(now.count - s.last_loss.count) < p.base_ns) return;
  s.window = std::max(s.window * (1 - p.loss_decrease), p.min_window);
  s.reference = s.window;
  s.last_loss = now;
}

}  // namespace

Hpcc::Params Hpcc::make_params(std::span<const double> values, const PortFacts& facts) {
  Params p;
  p.path = window_path(facts);
  p.eta = values[kEta];
  p.max_stage = static_cast<std::uint32_t>(values[kMaxStage]);
  p.base_ns = values[kBaseRttUs] > 0 ? values[kBaseRttUs] * 1000 : p.path.base_rtt_ns;
  const double bytes_per_mbps = p.base_ns / 8000;
  p.increase = values[kIncrease] * bytes_per_mbps;
  p.min_window = values[kMinRate] * bytes_per_mbps;
  p.loss_decrease = values[kLossDecrease];
  p.units.sent = std::max(static_cast<std::uint32_t>(128 * values[kIntMulti]), 1U);
  p.units.queue = std::max(static_cast<std::uint32_t>(80 * values[kIntMulti]), 1U);
  if (values[kPayloadWindow] != 0 && facts.mtu_bytes != 0) {
    p.wire_share = std::max((p.path.packet_bytes + kRecordsOnWire) / facts.mtu_bytes, 1.0);
  }
  // W_init: the link's rate for T, one packet at least.
  const double fills = static_cast<double>(p.path.link_rate.bps) * p.base_ns * 1e-9 / 8;
  p.max_window = std::max({fills, p.path.packet_bytes, p.min_window});
  return p;
}

void Hpcc::on_event(State& s, const Params& p, const Event& e, Decision& d) {
  switch (e.signal) {
    case Signal::start:
      d = Decision{};
      s = State{};
      s.utilisation = 1;
      s.window = start_window(e, p.path, p.max_window, p.min_window);
      s.reference = s.window;
      s.last_loss = e.now - Nanos{1'000'000'000};  // long ago
      s.round.begin(e);
      break;
    case Signal::ack:
      if (!measure(s, p, e)) return;
      compute_window(s, p, s.round.over(e));
      break;
    case Signal::nack:
      if (e.lost_bytes != 0) hpcc_loss(s, p, e.now);
      break;
    case Signal::timeout:
      hpcc_loss(s, p, e.now);
      break;
    case Signal::tick:  // the values may be others
      s.window = std::clamp(s.window, p.min_window, p.max_window);
      s.reference = std::clamp(s.reference, p.min_window, p.max_window);
      break;
    default:
      return;
  }
  decide_window(d, s.window, p.path, p.base_ns, Pacing::by_round_trip);
  if (d.limiter == Limiter::window) {
    d.window_bytes = static_cast<std::uint64_t>(s.window * p.wire_share);
  }
}

AlgorithmInfo Hpcc::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::hpcc;
  info.name = "hpcc";
  info.summary = "in-flight bytes of the fullest link by telemetry, window per flow (SIGCOMM 2019)";
  info.echo = EcnEcho::none;
  info.wants = signal_bit(Signal::ack) | signal_bit(Signal::nack) | signal_bit(Signal::timeout) |
               kWantsTelemetry;
  info.params = kHpccSpecs;
  info.profiles = kHpccProfiles;
  return info;
}

}  // namespace paceline::cc
