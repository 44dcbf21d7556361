#include "cc/rate/switch_notified.h"

#include <algorithm>
#include <iterator>

namespace paceline::cc {
namespace {

// [QAU] IEEE 802.1Qau-2010, the managed objects of a reaction point (names as in Linux's dcbnl.h).
// [D15] Zhu et al., SIGCOMM 2015, for 40 Gb/s; see dcqcn_params.h.
constexpr ParamSpec kSpecs[] = {
    {"decrease_gain", "1", 1.0 / 128, 1e-4, 0.5, true,
     "Gd: share of the rate that each of 63 steps of feedback cuts", "QAU rpgGd: 2^-7"},
    {"min_decrease_factor", "1", 0.5, 0, 1, true,
     "rate after a cut, as a share of the rate before, is at least this", "QAU rpgMinDecFac: 50 %"},
    {"clamp_after_timer", "flag", 1, 0, 1, true,
     "a cut sets the target to the current rate after an increase by the byte counter; 1: by the "
     "timer, too",
     "own; QAU: 0"},
    {"increase_timer_us", "us", 55, 1, 1'000'000, true,
     "T: an increase event this often after a cut", "D15; QAU rpgTimeReset: 15 ms"},
    {"byte_counter", "bytes", 10e6, 0, 1e12, true,
     "B: an increase event per this many bytes sent; 0 = off, the timer decides alone",
     "D15; QAU rpgByteReset: 150 kB"},
    {"fast_recovery_stages", "count", 5, 0, 31, true,
     "F: increase events in fast recovery, before the target is raised", "D15; QAU rpgThreshold"},
    {"additive_increase_mbps", "Mb/s", 40, 0, 100'000, true, "R_AI: step of the target",
     "D15; QAU rpgAiRate: 5 at 10 Gb/s"},
    {"hyper_increase_mbps", "Mb/s", 200, 0, 400'000, true,
     "R_HAI: the i-th hyper increase steps by i times this, once timer and byte counter both "
     "exceed F",
     "as dcqcn; QAU rpgHaiRate: 50 at 10 Gb/s"},
    {"min_rate_mbps", "Mb/s", 100, 1, 100'000, true, "floor of the rate",
     "as dcqcn; QAU rpgMinRate: 10"},
    {"start_rate", "1", 1, 0.001, 1, true, "rate of a new context as a share of the line rate",
     "QAU: line rate"},
    kRateWindowSpec,
};
static_assert(std::size(kSpecs) == SwitchNotified::kParams);

constexpr ProfileValue kQcn[] = {
    {"decrease_gain", 1.0 / 128},
    {"min_decrease_factor", 0.5},
    {"clamp_after_timer", 0},
    {"increase_timer_us", 15'000},
    {"byte_counter", 150'000},
    {"fast_recovery_stages", 5},
    {"additive_increase_mbps", 5, 10e9},
    {"hyper_increase_mbps", 50, 10e9},
    {"min_rate_mbps", 10},
    {"start_rate", 1},
};

constexpr Profile kProfiles[] = {
    {"qcn", "IEEE 802.1Qau defaults for 10 Gb/s; R_AI and R_HAI scale with the link", kQcn},
};

void cut(SwitchNotified::State& s, const SwitchNotified::Params& p, const Event& event) {
  s.limited = true;
  if (s.increased(p.clamp_after_timer)) s.rates.target_bps = s.rates.current_bps;
  s.lower(p, std::max(1 - p.decrease_gain * event.feedback, p.min_decrease_factor));
  s.restart(p, event.now.count);
}

}  // namespace

SwitchNotified::Params SwitchNotified::make_params(std::span<const double> values,
                                                   const PortFacts& facts) {
  Params p;
  p.set({.line_rate_bps = facts.link_rate.bps,
         .additive_mbps = values[kAdditiveIncreaseMbps],
         .hyper_mbps = values[kHyperIncreaseMbps],
         .fast_recovery_stages = values[kFastRecoveryStages],
         .hyper_ramp = true,
         .byte_counter = values[kByteCounter],
         .increase_timer_us = values[kIncreaseTimerUs],
         .min_rate_mbps = values[kMinRateMbps],
         .start_rate = values[kStartRate]});
  p.decrease_gain = values[kDecreaseGain];
  p.min_decrease_factor = values[kMinDecreaseFactor];
  p.window = rate_window(values[kWindowRoundTrips], facts);
  p.clamp_after_timer = values[kClampAfterTimer] != 0;
  return p;
}

void SwitchNotified::on_event(State& s, const Params& p, const Event& event, Decision& decision) {
  if (event.signal == Signal::start) {
    s = State{};
    s.begin(p, event);
    decision = Decision{};
  } else {
    if (s.increase_at == Recovery::kNever && !s.limited) s.follow_start(p);
    s.enforce_bounds(p);
    s.count_bytes(p, event.sent_bytes);
    s.run_timer(p, event.now.count);
    if (event.signal == Signal::notice) cut(s, p, event);
  }
  const bool climbing = s.climbing(p);
  decision.rate = Rate{s.rates.current_bps};
  decision.window_bytes = p.window.of(decision.rate);
  decision.wake_at = climbing ? Nanos{s.increase_at} : kNeverNanos;
  decision.wake_bytes =
      climbing && p.byte_counter != 0 ? p.byte_counter - s.byte_count : kUnlimited;
}

AlgorithmInfo SwitchNotified::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::switch_notified;
  info.name = "switch-notified";
  info.summary = "rate control by notices of switches, as QCN on Ethernet (IEEE 802.1Qau)";
  info.key = ContextKey::per_qp;
  info.over_planes = true;
  info.echo = EcnEcho::none;
  info.wants = signal_bit(Signal::notice);
  info.params = kSpecs;
  info.profiles = kProfiles;
  return info;
}

}  // namespace paceline::cc
