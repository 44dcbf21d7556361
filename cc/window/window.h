// Shared by algorithms with a window: the units of their path, and how a window becomes a decision.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/interface/algorithm.h"
#include "cc/interface/decision.h"
#include "cc/interface/event.h"
#include "cc/interface/round_trip.h"

namespace paceline::cc {

// The path as parameters know it; every field is positive.
struct WindowPath {
  Rate link_rate{};
  double packet_bytes = 0;  // of a full packet on the wire
  double bdp_bytes = 0;     // what fills the unloaded path, one packet at least
  std::uint32_t base_rtt_ns = 0;
};

inline WindowPath window_path(const PortFacts& facts) {
  WindowPath path;
  path.link_rate = max_rate(Rate{1}, facts.link_rate);
  path.packet_bytes = facts.full_packet_bytes != 0 ? facts.full_packet_bytes : facts.mtu_bytes + 82;
  path.base_rtt_ns = facts.base_rtt_ns != 0 ? facts.base_rtt_ns : 10'000;
  const double fills = static_cast<double>(path.link_rate.bps) * path.base_rtt_ns * 1e-9 / 8;
  path.bdp_bytes = std::max(fills, path.packet_bytes);
  return path;
}

// Bytes that a rate keeps in flight for a round trip.
inline double bytes_of(Rate rate, std::uint32_t rtt_ns) {
  return static_cast<double>(rate.bps) * rtt_ns * 1e-9 / 8;
}

// The rate that sends this many bytes in a round trip: at least 1 b/s, at most the link's rate.
inline Rate rate_of(double bytes, double rtt_ns, Rate link_rate) {
  const double bps = bytes * 8e9 / rtt_ns;
  if (!(bps < static_cast<double>(link_rate.bps))) return link_rate;
  return max_rate(Rate{1}, Rate{static_cast<std::uint64_t>(bps)});
}

// Where a handed-over connection begins: at the smaller of its former window and a new one's.
inline double start_window(const Event& event, const WindowPath& path, double own, double least) {
  if (event.handover == nullptr || event.handover->rate.bps == 0) return own;
  const std::uint32_t rtt =
      event.handover->srtt_ns != 0 ? event.handover->srtt_ns : path.base_rtt_ns;
  return std::max(std::min(bytes_of(event.handover->rate, rtt), own), least);
}

enum class Pacing : std::uint8_t { ack_clock, by_round_trip };

// The decision for a window. Less than a packet per round trip is always paced, with one packet in
// flight; above that the window is the clock, or it is spread over the round trip.
inline void decide_window(Decision& d, double window, const WindowPath& path, double rtt_ns,
                          Pacing pacing) {
  if (window < path.packet_bytes) {
    d.rate = rate_of(window, rtt_ns, path.link_rate);
    d.window_bytes = static_cast<std::uint64_t>(path.packet_bytes);
    d.limiter = Limiter::path;
    return;
  }
  d.rate = pacing == Pacing::ack_clock ? path.link_rate : rate_of(window, rtt_ns, path.link_rate);
  d.window_bytes = static_cast<std::uint64_t>(window);
  d.limiter = Limiter::window;
}

}  // namespace paceline::cc
