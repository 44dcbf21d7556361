#include "cc/window/dctcp.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace paceline::cc {
namespace {

constexpr ParamSpec kDctcpSpecs[] = {
    {"gain", "1", 1.0 / 16, 0.0001, 1, true, "g: weight of the newest round trip in alpha",
     "RFC 8257, 4.2; SIGCOMM'10, section 3.4"},
    {"initial_alpha", "1", 1, 0, 1, true, "alpha of a new flow", "RFC 8257, 3.3"},
    {"increase", "packets", 1, 0.001, 100, true, "growth of the window per round trip",
     "SIGCOMM'10, section 3.1: as TCP"},
    {"loss_decrease", "1", 0.5, 0.01, 0.99, true, "share of the window that a loss takes",
     "RFC 8257, 3.5: as TCP"},
    {"start_window", "packets", 10, 0, 1e6, true,
     "window of a new flow; 0 = what fills the unloaded path", "RFC 6928, section 2: 10 segments"},
    {"min_window", "packets", 2, 0.001, 100, true, "lower bound of the window",
     "Linux, tcp_dctcp.c: 2"},
    {"max_window", "packets", 10'000, 1, 1e6, true, "upper bound of the window", "own"},
};
static_assert(std::size(kDctcpSpecs) == Dctcp::kParams);

// RoCE flows begin at line rate elsewhere on this shelf; this makes dctcp comparable with them.
constexpr ProfileValue kDctcpLineStart[] = {{"start_window", 0}};

// Fractions of a packet per round trip, for incasts of more flows than packets fit on the path.
constexpr ProfileValue kDctcpFractions[] = {{"start_window", 0}, {"min_window", 0.01}};

constexpr Profile kDctcpProfiles[] = {
    {"line-start", "own: the first window fills the path", kDctcpLineStart},
    {"fractions", "own: line-start, and windows below a packet", kDctcpFractions},
};

void lower(Dctcp::State& s, const Dctcp::Params& p, double factor) {
  s.window = std::max(s.window * factor, p.min_window);
  s.threshold = s.window;
  s.cut = true;
}

void grow(Dctcp::State& s, const Dctcp::Params& p, const Event& e, double bytes) {
  const double used = static_cast<double>(e.inflight_bytes) + e.acked_bytes + p.path.packet_bytes;
  if (s.window < s.threshold) {
    // Slow start doubles the used window; a window of twice that has no evidence for more.
    if (2 * used >= s.window) s.window = std::min(s.window + bytes, p.max_window);
  } else if (used >= s.window) {
    const double per_byte = p.increase / std::max(s.window, p.path.packet_bytes);
    s.window = std::min(s.window + per_byte * bytes, p.max_window);
  }
}

void end_round_trip(Dctcp::State& s, const Dctcp::Params& p) {
  double share = 0;
  if (s.exact) {
    if (s.acked != 0) share = static_cast<double>(s.marked) / static_cast<double>(s.acked);
  } else if (s.notified) {
    share = 1;
  }
  s.alpha = (1 - p.gain) * s.alpha + p.gain * share;
  s.acked = 0;
  s.marked = 0;
  s.cut = false;
  s.notified = false;
}

void on_dctcp_ack(Dctcp::State& s, const Dctcp::Params& p, const Event& e) {
  if (e.rtt_ns != 0) s.rtt_ns = e.rtt_ns;
  const std::uint32_t marked = std::min(e.marked_bytes, e.acked_bytes);
  if (marked != 0) s.exact = true;
  s.acked += e.acked_bytes;
  s.marked += marked;
  if (s.round.over(e)) end_round_trip(s, p);
  if (marked != 0 && !s.cut) lower(s, p, 1 - s.alpha / 2);
  grow(s, p, e, e.acked_bytes - marked);
}

}  // namespace

Dctcp::Params Dctcp::make_params(std::span<const double> values, const PortFacts& facts) {
  Params p;
  p.path = window_path(facts);
  const double packet = p.path.packet_bytes;
  p.gain = values[kGain];
  p.initial_alpha = values[kInitialAlpha];
  p.increase = values[kIncrease] * packet;
  p.loss_decrease = values[kLossDecrease];
  p.min_window = values[kMinWindow] * packet;
  p.max_window = std::max(values[kMaxWindow] * packet, p.min_window);
  const double start = values[kStartWindow] > 0 ? values[kStartWindow] * packet : p.path.bdp_bytes;
  p.start_window = std::clamp(start, p.min_window, p.max_window);
  return p;
}

void Dctcp::on_event(State& s, const Params& p, const Event& e, Decision& d) {
  switch (e.signal) {
    case Signal::start:
      d = Decision{};
      s = State{};
      s.alpha = p.initial_alpha;
      s.threshold = std::numeric_limits<double>::max();
      s.window = start_window(e, p.path, p.start_window, p.min_window);
      s.round.begin(e);
      break;
    case Signal::ack:
      on_dctcp_ack(s, p, e);
      break;
    case Signal::cnp:
      if (s.exact) return;
      s.notified = true;
      if (!s.cut) lower(s, p, 1 - s.alpha / 2);
      break;
    case Signal::nack:
      if (e.lost_bytes != 0 && !s.cut) lower(s, p, 1 - p.loss_decrease);
      break;
    case Signal::timeout:
      // All of it may be gone: back to one packet, or min_window if that is more.
      s.threshold = std::max(s.window * (1 - p.loss_decrease), p.min_window);
      s.window = std::max(p.min_window, std::min(s.window, p.path.packet_bytes));
      s.cut = true;
      break;
    case Signal::tick:  // the values may be others
      break;
    default:
      return;
  }
  s.window = std::clamp(s.window, p.min_window, p.max_window);
  decide_window(d, s.window, p.path, s.rtt_ns != 0 ? s.rtt_ns : p.path.base_rtt_ns,
                Pacing::ack_clock);
}

AlgorithmInfo Dctcp::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::dctcp;
  info.name = "dctcp";
  info.summary = "share of marked bytes per round trip, window per flow (SIGCOMM 2010, RFC 8257)";
  info.echo = EcnEcho::cnp;
  info.wants = signal_bit(Signal::ack) | signal_bit(Signal::nack) | signal_bit(Signal::timeout) |
               signal_bit(Signal::cnp);
  info.params = kDctcpSpecs;
  info.profiles = kDctcpProfiles;
  return info;
}

}  // namespace paceline::cc
