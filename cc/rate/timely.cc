// Values marked (r) are recalled from the papers and were not read again there; those of [HC] were:
//   [HC]   alibaba-edu/High-Precision-Congestion-Control, simulation/src/point-to-point/model/
//          rdma-hw.cc: code and attribute defaults.
//   [HR]   the same repository, simulation/run.py: it scales the steps by bandwidth / 10 Gb/s.
#include "cc/rate/timely.h"

#include <algorithm>
#include <iterator>

namespace paceline::cc {
namespace {

constexpr ParamSpec kTimelySpecs[] = {
    {"gradient_gain", "1", 0.875, 0.001, 1, true,
     "weight of the newest difference of round trips in the gradient",
     "SIGCOMM'15, algorithm 1, alpha; value: HC"},
    {"min_rtt_us", "us", 20, 0, 10'000, true,
     "divides the gradient, and is the least time between updates; 0 = the unloaded path's",
     "SIGCOMM'15, section 4.2, D_minRTT; value: HC"},
    {"low_us", "us", 50, 0, 100'000, true, "round trips below it always raise the rate",
     "SIGCOMM'15, section 4.3, T_low; value: HC"},
    {"high_us", "us", 500, 0.1, 1'000'000, true, "round trips above it always cut the rate",
     "SIGCOMM'15, section 4.3, T_high; value: HC"},
    {"additive_increase_mbps", "Mb/s", 10, 0.001, 100'000, true, "delta: step of an increase",
     "SIGCOMM'15, section 5, delta (r); HC at 10 Gb/s"},
    {"hyper_after", "count", 5, 1, 1000, true,
     "updates in a row without a positive gradient after which steps are larger",
     "SIGCOMM'15, section 4.3; value: HC"},
    {"hyper_factor", "1", 5, 1, 1000, true, "N: how much larger",
     "SIGCOMM'15, algorithm 1, N; HC: 50 to 10 Mb/s"},
    {"hyper_below_low", "flag", 0, 0, 1, true,
     "1: updates below low_us count among those in a row, and take the larger step too; 0: they "
     "end the row",
     "HC, UpdateRateTimely"},
    {"decrease", "1", 0.8, 0.0001, 1, true, "beta: share of the excess or gradient that is cut",
     "SIGCOMM'15, algorithm 1, beta; value: HC"},
    {"patched", "flag", 0, 0, 1, true, "1: the patched law of CoNEXT'16 between the thresholds",
     "CoNEXT'16, algorithm 2"},
    {"reference_rtt_us", "us", 0, 0, 100'000, true,
     "patched: the round trip whose relative excess is cut; 0 = low_us",
     "CoNEXT'16, section 4.3 (r)"},
    {"segment_bytes", "bytes", 16'000, 1, 1e9, true, "bytes acknowledged between updates, at least",
     "SIGCOMM'15, section 5: segments of 16 to 64 kB"},
    {"round_trip_updates", "flag", 0, 0, 1, true,
     "1: one update per round trip, whatever segment_bytes and min_rtt_us are, and the first "
     "sample "
     "is only remembered",
     "HC, HandleAckTimely"},
    {"min_rate_mbps", "Mb/s", 10, 0.001, 100'000, true, "lower bound of the rate", "own; HR: 1000"},
    {"start_rate", "1", 1, 0.0001, 1, true, "rate of a new flow, as a share of the line rate",
     "HC; SIGCOMM'15, section 4.3 divides the line among the sender's flows"},
    kRateWindowSpec,
};
static_assert(std::size(kTimelySpecs) == Timely::kParams);

// [HC]: steps in proportion to the link, and that code's rules where they are not the paper's. Its
// first five increases in a row are small, below T_low or not; here the update that completes the
// row of `hyper_after` has the large step already, hence 6. Minimum rate: run.py.
constexpr ProfileValue kTimelyHpccRepo[] = {
    {"gradient_gain", 0.875}, {"min_rtt_us", 20},        {"low_us", 50},
    {"high_us", 500},         {"decrease", 0.8},         {"additive_increase_mbps", 10, 10e9},
    {"hyper_after", 6},       {"hyper_factor", 5},       {"hyper_below_low", 1},
    {"min_rate_mbps", 1000},  {"round_trip_updates", 1},
};

// CoNEXT'16, section 4.3: the same thresholds, a cut of 0.8 % of the relative excess (r).
constexpr ProfileValue kTimelyPatched[] = {
    {"patched", 1},
    {"decrease", 0.008},
};

// The papers' values are for 10 Gb/s and hosts that answer in tens of microseconds. This is the
// patched law on a fabric of 1 us links: thresholds and steps in proportion to path and link.
constexpr ProfileValue kTimelyFabric[] = {
    {"patched", 1}, {"decrease", 0.1}, {"min_rtt_us", 0},
    {"low_us", 15}, {"high_us", 60},   {"additive_increase_mbps", 50, 10e9},
};

constexpr Profile kTimelyProfiles[] = {
    {"hpcc-repo", "HPCC authors' simulator, run.py --cc timely", kTimelyHpccRepo},
    {"patched", "Zhu et al., CoNEXT 2016, section 4.3", kTimelyPatched},
    {"fabric", "own: the patched law for paths of some microseconds", kTimelyFabric},
};

void raise_rate(Timely::State& s, const Timely::Params& p, double steps) {
  s.rate_bps += steps * p.step_bps;
}

// One more update in a row that finds nothing wrong.
void raise_calmly(Timely::State& s, const Timely::Params& p) {
  if (s.calm < p.hyper_after) ++s.calm;
  raise_rate(s, p, s.calm >= p.hyper_after ? p.hyper_factor : 1);
}

// Algorithm 1 between the thresholds.
void follow_gradient(Timely::State& s, const Timely::Params& p, double gradient) {
  if (gradient <= 0) {
    raise_calmly(s, p);
    return;
  }
  s.calm = 0;
  s.rate_bps *= std::max(1 - p.decrease * gradient, 0.0);
}

// Algorithm 2 of CoNEXT'16 between the thresholds.
void follow_reference(Timely::State& s, const Timely::Params& p, double gradient, double rtt_ns) {
  const double w = Timely::weight(gradient);
  const double error = (rtt_ns - p.reference_ns) / p.reference_ns;
  s.rate_bps = p.step_bps * (1 - w) + s.rate_bps * std::max(1 - p.decrease * w * error, 0.0);
}

void take_sample(Timely::State& s, const Timely::Params& p, std::uint32_t rtt) {
  const double rtt_ns = rtt;
  const double diff = s.last_rtt_ns == 0 ? 0 : rtt_ns - s.last_rtt_ns;
  s.last_rtt_ns = rtt;
  s.rtt_diff_ns = (1 - p.gain) * s.rtt_diff_ns + p.gain * diff;
  const double gradient = s.rtt_diff_ns / p.min_rtt_ns;
  if (rtt_ns < p.low_ns && p.hyper_below_low) {
    raise_calmly(s, p);
  } else if (rtt_ns < p.low_ns) {
    s.calm = 0;
    raise_rate(s, p, 1);
  } else if (rtt_ns > p.high_ns) {
    s.calm = 0;
    s.rate_bps *= 1 - p.decrease * (1 - p.high_ns / rtt_ns);
  } else if (p.patched) {
    follow_reference(s, p, gradient, rtt_ns);
  } else {
    follow_gradient(s, p, gradient);
  }
}

void on_round_trip(Timely::State& s, const Timely::Params& p, const Event& e) {
  if (e.rtt_ns == 0 || !s.round.over(e)) return;
  if (s.last_rtt_ns == 0) {
    s.last_rtt_ns = e.rtt_ns;
  } else {
    take_sample(s, p, e.rtt_ns);
  }
}

void on_timely_ack(Timely::State& s, const Timely::Params& p, const Event& e) {
  if (p.round_trip_updates) {
    on_round_trip(s, p, e);
    return;
  }
  s.acked += e.acked_bytes;
  if (e.rtt_ns == 0 || s.acked < p.segment_bytes) return;
  const auto since = static_cast<double>(e.now.count - s.updated.count);
  if (s.last_rtt_ns != 0 && since < p.min_rtt_ns) return;
  take_sample(s, p, e.rtt_ns);
  s.updated = e.now;
  s.acked = 0;
}

}  // namespace

double Timely::weight(double gradient) { return std::clamp(2 * gradient + 0.5, 0.0, 1.0); }

Timely::Params Timely::make_params(std::span<const double> values, const PortFacts& facts) {
  Params p;
  p.link_bps = static_cast<double>(max_rate(Rate{1}, facts.link_rate).bps);
  p.min_bps = std::min(values[kMinRateMbps] * 1e6, p.link_bps);
  p.start_bps = std::max(values[kStartRate] * p.link_bps, p.min_bps);
  p.step_bps = values[kAdditiveIncreaseMbps] * 1e6;
  p.gain = values[kGradientGain];
  p.min_rtt_ns = values[kMinRttUs] > 0 ? values[kMinRttUs] * 1000 : unloaded_rtt_ns(facts);
  p.low_ns = values[kLowUs] * 1000;
  p.high_ns = values[kHighUs] * 1000;
  p.reference_ns = values[kReferenceRttUs] > 0 ? values[kReferenceRttUs] * 1000 : p.low_ns;
  p.reference_ns = std::max(p.reference_ns, 1.0);  // both may be 0; it divides
  p.decrease = values[kDecrease];
  p.hyper_factor = values[kHyperFactor];
  p.hyper_after = static_cast<std::uint32_t>(values[kHyperAfter]);
  p.segment_bytes = static_cast<std::uint32_t>(values[kSegmentBytes]);
  p.window = rate_window(values[kWindowRoundTrips], facts);
  p.patched = values[kPatched] != 0;
  p.hyper_below_low = values[kHyperBelowLow] != 0;
  p.round_trip_updates = values[kRoundTripUpdates] != 0;
  return p;
}

void Timely::on_event(State& s, const Params& p, const Event& e, Decision& d) {
  if (e.signal == Signal::start) {
    d = Decision{};
    s = State{};
    s.updated = e.now;
    s.round.begin(e);
    s.rate_bps = p.start_bps;
    if (e.handover != nullptr && e.handover->rate.bps != 0) {
      s.rate_bps = std::min(static_cast<double>(e.handover->rate.bps), p.start_bps);
    }
  } else if (e.signal == Signal::ack) {
    on_timely_ack(s, p, e);
  } else if (e.signal != Signal::tick) {  // a tick: the values may be others
    return;
  }
  s.rate_bps = std::clamp(s.rate_bps, p.min_bps, p.link_bps);
  d.rate = max_rate(Rate{1}, Rate{static_cast<std::uint64_t>(s.rate_bps)});
  d.window_bytes = p.window.of(d.rate);
}

AlgorithmInfo Timely::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::timely;
  info.name = "timely";
  info.summary = "gradient of the round trip, paced; original and patched (SIGCOMM 2015)";
  info.echo = EcnEcho::none;
  info.wants = signal_bit(Signal::ack);
  info.params = kTimelySpecs;
  info.profiles = kTimelyProfiles;
  return info;
}

}  // namespace paceline::cc
