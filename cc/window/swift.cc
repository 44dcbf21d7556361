#include "cc/window/swift.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace paceline::cc {
namespace {

constexpr ParamSpec kSwiftSpecs[] = {
    {"base_target_us", "us", 25, 1, 10'000, true, "delay target without scaling, of one hop",
     "Swift, section 3.5 and 5: 25 us in most experiments"},
    {"hop_scale_us", "us", 1, 0, 1000, true, "added to the target per hop beyond the first",
     "Swift, section 3.5"},
    {"hops", "1", 1, 1, 16, true,
     "switches on the path: 1 in a star, 3 in a leaf-spine, 5 in a fat tree",
     "own; Swift takes it from the packet's TTL"},
    {"flow_scale_range_us", "us", 100, 0, 10'000, true,
     "most that a small window adds to the target; 0 = no flow scaling",
     "Swift, section 3.5, figure 7"},
    {"flow_scale_min", "packets", 0.1, 0.001, 10, true, "window at which the whole range is added",
     "Swift, section 3.5"},
    {"flow_scale_max", "packets", 100, 1, 100'000, true, "window from which on nothing is added",
     "Swift, section 3.5"},
    {"increase", "packets", 1, 0.001, 100, true, "growth of the window per round trip",
     "Swift, section 3.2, ai"},
    {"decrease", "1", 0.8, 0.01, 1, true, "share of the relative excess taken from the window",
     "Swift, section 3.2, beta"},
    {"max_decrease", "1", 0.5, 0.01, 0.99, true, "most that one decrease takes",
     "Swift, section 3.2, max_mdf"},
    {"min_window", "packets", 0.001, 0.00001, 1, true, "lower bound of the window",
     "Swift, section 3.6"},
    {"max_window", "packets", 10'000, 1, 1e6, true, "upper bound of the window", "own"},
    {"start_window", "packets", 0, 0, 1e6, true,
     "window of a new flow; 0 = what fills the unloaded path", "own"},
    {"reset_timeouts", "1", 5, 1, 100, true,
     "timeouts in a row after which the window is the least",
     "Swift, section 3.2, RETX_RESET_THRESHOLD"},
    {"endpoint_target_us", "us", 100, 0, 10'000, true,
     "delay target of the far host, not scaled; 0 = no endpoint window",
     "Swift, section 3.3; the value is own"},
};
static_assert(std::size(kSwiftSpecs) == Swift::kParams);

// Packets that a rate keeps in flight for a round trip.
double packets_of(Rate rate, std::uint32_t rtt_ns, const Swift::Params& p) {
  return static_cast<double>(rate.bps) * rtt_ns * 1e-9 / p.packet_bits;
}

void shrink(Swift::State& s, const Swift::Params& p, Nanos now, double factor) {
  s.window = std::max(s.window * factor, p.min_window);
  s.last_decrease = now;
}

bool may_shrink(const Swift::State& s, const Swift::Params& p, Nanos now) {
  const std::uint32_t delay = s.delay_ns == 0 ? p.base_rtt_ns : s.delay_ns;
  return now.count - s.last_decrease.count >= static_cast<std::int64_t>(delay);
}

// Growth per acknowledged packet: `increase` per round trip, or per packet below one of them.
double growth(const Swift::Params& p, double window, double acked) {
  return window >= 1 ? p.increase / window * acked : p.increase * acked;
}

double decrease_factor(const Swift::Params& p, double delay, double target) {
  return std::max(1 - p.decrease * (delay - target) / delay, 1 - p.max_decrease);
}

// Section 3.3: the same law for the delay of the far host, with a target of its own.
void on_endpoint_delay(Swift::State& s, const Swift::Params& p, const Event& e) {
  if (e.rtt_ns == 0 || p.endpoint_target_ns == 0) return;
  const double delay = e.host_delay_ns;
  const std::uint32_t round_trip = s.delay_ns + e.host_delay_ns;
  if (delay < p.endpoint_target_ns) {
    const double acked = static_cast<double>(e.acked_bytes) / p.packet_bytes;
    s.endpoint += growth(p, s.endpoint, acked);
  } else if (e.now.count - s.last_endpoint_decrease.count >=
             static_cast<std::int64_t>(round_trip)) {
    // A window far above the one in force would have to fall for long before it counts.
    s.endpoint = std::min(s.endpoint, std::max(s.window, p.start_window));
    s.endpoint *= decrease_factor(p, delay, p.endpoint_target_ns);
    s.endpoint = std::max(s.endpoint, p.min_window);
    s.last_endpoint_decrease = e.now;
  }
}

void on_ack(Swift::State& s, const Swift::Params& p, const Event& e) {
  s.timeouts = 0;
  if (e.rtt_ns != 0) s.delay_ns = e.rtt_ns;
  if (s.delay_ns == 0) return;
  const double delay = s.delay_ns;
  const double target = Swift::target_ns(p, s.window);
  if (delay < target) {
    const double acked = static_cast<double>(e.acked_bytes) / p.packet_bytes;
    s.window += growth(p, s.window, acked);
    s.window = std::min(s.window, p.max_window);
  } else if (may_shrink(s, p, e.now)) {
    shrink(s, p, e.now, decrease_factor(p, delay, target));
  }
}

}  // namespace

double Swift::target_ns(const Params& p, double window) {
  const double scaled = p.flow_alpha / std::sqrt(window) + p.flow_beta;
  return p.base_target_ns + std::clamp(scaled, 0.0, p.flow_scale_range_ns);
}

Swift::Params Swift::make_params(std::span<const double> values, const PortFacts& facts) {
  Params p;
  p.link_rate = facts.link_rate;
  const std::uint32_t packet =
      facts.full_packet_bytes != 0 ? facts.full_packet_bytes : facts.mtu_bytes + 82;
  p.packet_bytes = packet;
  p.packet_bits = 8.0 * packet;
  p.base_target_ns = 1000 * (values[kBaseTargetUs] + values[kHopScaleUs] * (values[kHops] - 1));
  p.flow_scale_range_ns = 1000 * values[kFlowScaleRangeUs];
  // Section 3.5: from the whole range at flow_scale_min down to nothing at flow_scale_max.
  const double at_min = 1 / std::sqrt(values[kFlowScaleMin]);
  const double at_max = 1 / std::sqrt(values[kFlowScaleMax]);
  p.flow_alpha = at_min > at_max ? p.flow_scale_range_ns / (at_min - at_max) : 0;
  p.flow_beta = -p.flow_alpha * at_max;
  p.increase = values[kIncrease];
  p.decrease = values[kDecrease];
  p.max_decrease = values[kMaxDecrease];
  p.min_window = values[kMinWindow];
  p.max_window = values[kMaxWindow];
  p.endpoint_target_ns = 1000 * values[kEndpointTargetUs];
  p.base_rtt_ns = facts.base_rtt_ns != 0 ? facts.base_rtt_ns : 10'000;
  const double fills = packets_of(facts.link_rate, p.base_rtt_ns, p);
  p.start_window = std::min(values[kStartWindow] > 0 ? values[kStartWindow] : std::max(fills, 1.0),
                            p.max_window);
  p.reset_timeouts = static_cast<std::uint32_t>(values[kResetTimeouts]);
  return p;
}

void Swift::on_event(State& s, const Params& p, const Event& e, Decision& d) {
  switch (e.signal) {
    case Signal::start: {
      d = Decision{};
      s.window = p.start_window;
      s.endpoint = std::numeric_limits<double>::max();  // until the far host is slow
      s.last_endpoint_decrease = e.now - Nanos{1'000'000'000};
      s.last_decrease = e.now - Nanos{1'000'000'000};  // long ago
      if (e.handover != nullptr && e.handover->rate.bps != 0) {
        const std::uint32_t rtt = e.handover->srtt_ns != 0 ? e.handover->srtt_ns : p.base_rtt_ns;
        const double packets = packets_of(e.handover->rate, rtt, p);
        s.window = std::clamp(packets, p.min_window, p.start_window);
      }
      break;
    }
    case Signal::ack:
      on_ack(s, p, e);
      on_endpoint_delay(s, p, e);
      break;
    case Signal::nack:
      if (e.lost_bytes != 0 && may_shrink(s, p, e.now)) shrink(s, p, e.now, 1 - p.max_decrease);
      break;
    case Signal::timeout:
      if (++s.timeouts >= p.reset_timeouts) {
        shrink(s, p, e.now, 0);
      } else if (may_shrink(s, p, e.now)) {
        shrink(s, p, e.now, 1 - p.max_decrease);
      }
      break;
    case Signal::tick:  // values may be others
      s.window = std::clamp(s.window, p.min_window, p.max_window);
      break;
    default:
      return;
  }
  const double window = p.endpoint_target_ns > 0 ? std::min(s.window, s.endpoint) : s.window;
  // Section 3.6: less than a packet per round trip is paced, above that the window is the clock.
  if (window >= 1) {
    d.rate = p.link_rate;
    d.window_bytes = static_cast<std::uint64_t>(window * p.packet_bytes);
    d.limiter = Limiter::window;
  } else {
    const double rtt_ns = s.delay_ns == 0 ? p.base_rtt_ns : s.delay_ns;
    const double bps = window * p.packet_bits / rtt_ns * 1e9;
    d.rate = std::clamp(Rate{static_cast<std::uint64_t>(bps)}, Rate{1}, p.link_rate);
    d.window_bytes = static_cast<std::uint64_t>(p.packet_bytes);
    d.limiter = Limiter::path;
  }
}

AlgorithmInfo Swift::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::swift;
  info.name = "swift";
  info.over_planes = true;
  info.summary = "delay against a target, window per flow (SIGCOMM 2020)";
  info.echo = EcnEcho::none;
  info.wants = signal_bit(Signal::ack) | signal_bit(Signal::nack) | signal_bit(Signal::timeout);
  info.params = kSwiftSpecs;
  return info;
}

}  // namespace paceline::cc
