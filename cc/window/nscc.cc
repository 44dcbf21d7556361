//   [UE]  ultraethernet/uet-htsim, htsim/sim/uec.cpp: initNsccParams and updateCwndOnAck_NSCC.
#include "cc/window/nscc.h"

#include <algorithm>
#include <iterator>

namespace paceline::cc {
namespace {

// The network whose constants the others are scaled from: 100 Gb/s and 12 us [UE].
constexpr double kReferenceBytes = 150'000;
constexpr double kReferenceRttNs = 12'000;

constexpr ParamSpec kNsccSpecs[] = {
    {"target_us", "us", 0, 0, 10'000, true,
     "queueing delay that the window aims at; 0 = target_share of the unloaded round trip",
     "UE _target_Qdelay"},
    {"target_share", "1", 1, 0.01, 10, true, "see target_us; with packet trimming 0.75",
     "UE initNsccParams"},
    {"proportional", "packets", 4, 0, 100, true,
     "alpha: increase per round trip at no delay, at 100 Gb/s and 12 us; less towards the target",
     "UE _alpha"},
    {"fair", "packets", 5, 0, 100, true,
     "fi: increase per round trip without marks above the target, at 100 Gb/s and 12 us", "UE _fi"},
    {"constant", "packets", 0.15, 0.0001, 100, true,
     "eta: increase per round trip whatever the signals, at 100 Gb/s and 12 us", "UE _eta"},
    {"decrease", "1", 0.8, 0.01, 1, true,
     "gamma: share of the relative excess of delay that is cut", "UE _gamma"},
    {"max_decrease", "1", 0.5, 0.01, 0.99, true, "most that one decrease takes",
     "UE multiplicative_decrease"},
    {"delay_gain", "1", 0.0125, 0.0001, 1, true, "weight of one packet in the average delay",
     "UE _delay_alpha"},
    {"fast_delay_us", "us", 1, 0, 1000, true, "fast increase: queueing delay that counts as none",
     "UE fast_increase"},
    {"fast_scale", "1", 0.25, 0, 10, true,
     "fast increase: bytes per byte acknowledged, at 100 Gb/s and 12 us", "UE _fi_scale"},
    {"quick_adapt", "flag", 1, 0, 1, true, "1: quick adapt", "UE _disable_quick_adapt"},
    {"quick_gate", "count", 3, 0, 20, true,
     "quick adapt: only if less than the largest window / 2^this was delivered", "UE _qa_gate"},
    {"quick_threshold", "1", 4, 1, 1000, true,
     "quick adapt: triggered by a queueing delay of so many targets", "UE _qa_threshold"},
    {"adjust_packets", "packets", 8, 0.1, 1000, true,
     "gathered increases take effect after so many, or after a round trip",
     "UE _adjust_bytes_threshold"},
    {"min_window", "packets", 1, 0.001, 100, true, "lower bound of the window", "UE _min_cwnd"},
    {"max_window", "1", 1.5, 0.1, 100, true,
     "upper bound of the window, and that of a new flow, as a share of what fills the path",
     "UE initNscc"},
};
static_assert(std::size(kNsccSpecs) == Nscc::kParams);

constexpr ProfileValue kNsccTrimming[] = {{"target_share", 0.75}};
constexpr ProfileValue kNsccFractions[] = {{"min_window", 0.01}};

constexpr Profile kNsccProfiles[] = {
    {"trimming", "UE initNsccParams, with packet trimming", kNsccTrimming},
    {"fractions", "own: windows below a packet, for incasts wider than the path", kNsccFractions},
};

void bound(Nscc::State& s, const Nscc::Params& p) {
  s.window = std::clamp(s.window, p.min_window, p.max_window);
}

// A mark above the target drives the average up; none there says that the delay is on its way down.
void average_delay(Nscc::State& s, const Nscc::Params& p, double delay, bool marked,
                   double packets) {
  const double towards = !marked && delay > p.target_ns ? 0.25 * s.base_rtt_ns : delay;
  s.average_ns += (towards - s.average_ns) * std::min(p.delay_gain * packets, 1.0);
}

// True if what the caller acknowledges (or lost) must not move the window any further.
bool quick_adapt(Nscc::State& s, const Nscc::Params& p, const Event& e, bool marked, double delay) {
  if (!p.quick_adapt) return false;
  bool done = false;
  if (marked && s.ignored < s.to_ignore) {
    done = true;
  } else if (!s.periods || e.now > s.quick_until) {
    const bool asked = s.lost || delay > p.quick_threshold_ns;
    const auto delivered = static_cast<double>(s.delivered);
    if (s.periods && asked && delivered < p.max_window * p.quick_gate) {
      s.window = std::min(s.window, std::max(delivered, p.min_window));
      s.to_ignore = e.inflight_bytes;
      s.ignored = 0;
      s.lost = false;
      done = true;
    }
    s.delivered = 0;
    s.quick_until = e.now + Nanos{static_cast<std::int64_t>(s.base_rtt_ns + p.target_ns)};
    s.periods = true;
  }
  if (done) {
    s.increase = 0;
    s.adjust_bytes = 0;
  }
  return done;
}

void rise_below_target(Nscc::State& s, const Nscc::Params& p, double bytes, double delay) {
  if (delay < p.fast_delay_ns) {
    s.unhurried += bytes;
    if (s.hurrying || s.unhurried > s.window) {
      s.window += bytes * p.fast_scale;
      s.hurrying = true;
      return;
    }
  } else {
    s.unhurried = 0;
  }
  s.hurrying = false;
  s.increase += p.proportional * bytes * (p.target_ns - delay);
}

void fall(Nscc::State& s, const Nscc::Params& p, Nanos now) {
  s.hurrying = false;
  s.unhurried = 0;
  if (s.average_ns <= p.target_ns) return;
  if (now.count - s.decreased.count <= static_cast<std::int64_t>(s.base_rtt_ns)) return;
  const double excess = (s.average_ns - p.target_ns) / s.average_ns;
  s.window *= std::max(1 - p.decrease * excess, 1 - p.max_decrease);
  s.decreased = now;
}

void adjust(Nscc::State& s, const Nscc::Params& p, Nanos now) {
  const bool period = now.count - s.adjusted.count >= static_cast<std::int64_t>(p.path.base_rtt_ns);
  if (static_cast<double>(s.adjust_bytes) <= p.adjust_bytes && !period) return;
  s.window += s.increase / s.window;
  if (period) {
    s.window += p.constant;
    s.adjusted = now;
  }
  s.increase = 0;
  s.adjust_bytes = 0;
}

void on_nscc_ack(Nscc::State& s, const Nscc::Params& p, const Event& e) {
  if (e.rtt_ns != 0) {
    s.rtt_ns = e.rtt_ns;
    s.base_rtt_ns = std::min(s.base_rtt_ns, e.rtt_ns);
  }
  s.delivered += e.acked_bytes;
  s.adjust_bytes += e.acked_bytes;
  s.ignored += e.acked_bytes;
  if (e.marked_bytes != 0) s.exact = true;
  const bool marked = s.exact ? e.marked_bytes != 0 : s.notified;
  s.notified = false;
  if (s.rtt_ns == 0) return;
  const double delay = s.rtt_ns - s.base_rtt_ns;
  const double bytes = e.acked_bytes;
  if (e.rtt_ns != 0) average_delay(s, p, delay, marked, bytes / p.path.packet_bytes);
  if (quick_adapt(s, p, e, marked, delay)) return;
  if (marked) {
    if (delay >= p.target_ns) fall(s, p, e.now);
  } else if (delay >= p.target_ns) {
    s.increase += p.fair * bytes;
  } else {
    rise_below_target(s, p, bytes, delay);
  }
  bound(s, p);
  adjust(s, p, e.now);
}

void on_nscc_loss(Nscc::State& s, const Nscc::Params& p, const Event& e) {
  s.ignored += e.lost_bytes;
  s.delivered += e.acked_bytes;
  s.lost = true;
  // A lost packet had a full queue before it.
  average_delay(s, p, p.path.base_rtt_ns, true, e.lost_bytes / p.path.packet_bytes);
  if (!quick_adapt(s, p, e, true, 0)) s.window -= e.lost_bytes;
}

}  // namespace

Nscc::Params Nscc::make_params(std::span<const double> values, const PortFacts& facts) {
  Params p;
  p.path = window_path(facts);
  const double packet = p.path.packet_bytes;
  const double a = p.path.bdp_bytes / kReferenceBytes;
  p.target_ns =
      values[kTargetUs] > 0 ? values[kTargetUs] * 1000 : values[kTargetShare] * p.path.base_rtt_ns;
  p.target_ns = std::max(p.target_ns, 1.0);
  // b = target / 12 us; alpha = proportional a b / target, in bytes per ns.
  p.proportional = values[kProportional] * packet * a / kReferenceRttNs;
  p.fair = values[kFair] * packet * a;
  p.constant = values[kConstant] * packet * a;
  p.decrease = values[kDecrease];
  p.max_decrease = values[kMaxDecrease];
  p.delay_gain = values[kDelayGain];
  p.fast_delay_ns = std::min(values[kFastDelayUs] * 1000, p.target_ns);
  p.fast_scale = values[kFastScale] * a;
  p.quick_adapt = values[kQuickAdapt] != 0;
  p.quick_gate = 1.0 / static_cast<double>(1U << static_cast<unsigned>(values[kQuickGate]));
  p.quick_threshold_ns = values[kQuickThreshold] * p.target_ns;
  p.adjust_bytes = values[kAdjustBytes] * packet;
  p.min_window = values[kMinWindow] * packet;
  p.max_window = std::max(values[kMaxWindow] * p.path.bdp_bytes, p.min_window);
  return p;
}

void Nscc::on_event(State& s, const Params& p, const Event& e, Decision& d) {
  switch (e.signal) {
    case Signal::start:
      d = Decision{};
      s = State{};
      s.window = start_window(e, p.path, p.max_window, p.min_window);
      s.base_rtt_ns = p.path.base_rtt_ns;
      s.adjusted = e.now;
      s.decreased = e.now;
      break;
    case Signal::ack:
      on_nscc_ack(s, p, e);
      break;
    case Signal::cnp:
      s.notified = !s.exact;
      return;
    case Signal::nack:
    case Signal::timeout:
      on_nscc_loss(s, p, e);
      break;
    case Signal::tick:  // the values may be others
      break;
    default:
      return;
  }
  bound(s, p);
  decide_window(d, s.window, p.path, s.rtt_ns != 0 ? s.rtt_ns : p.path.base_rtt_ns,
                Pacing::ack_clock);
}

AlgorithmInfo Nscc::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::nscc;
  info.name = "nscc";
  info.over_planes = true;
  info.summary = "ECN and queueing delay in four quadrants, window per flow (Ultra Ethernet 1.0)";
  info.echo = EcnEcho::cnp;
  info.wants = signal_bit(Signal::ack) | signal_bit(Signal::nack) | signal_bit(Signal::timeout) |
               signal_bit(Signal::cnp);
  info.params = kNsccSpecs;
  info.profiles = kNsccProfiles;
  return info;
}

}  // namespace paceline::cc
