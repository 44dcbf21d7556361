#include "cc/rate/dcqcn.h"

#include <algorithm>

#include "cc/rate/dcqcn_params.h"

namespace paceline::cc {
namespace {

using State = Dcqcn::State;
using Params = Dcqcn::Params;

constexpr std::int64_t kNeverNs = kNeverNanos.count;

// factor^n times alpha, by squaring: the decay of n quiet periods at once.
double decayed(double alpha, double factor, std::uint64_t n) {
  while (n != 0) {
    if ((n & 1) != 0) alpha *= factor;
    n >>= 1;
    if (n != 0) factor *= factor;
  }
  return alpha;
}

// Ends every alpha period that is over at `now`: the first with its CNP if the flag says so, the
// others without. Called only where alpha is read or a CNP arrives, so its rounding depends only on
// CNPs and cuts, never on how often the state was read in between.
void settle_alpha(State& s, const Params& p, std::int64_t now) {
  if (now - s.alpha_at < p.alpha_period_ns) return;
  auto periods = static_cast<std::uint64_t>((now - s.alpha_at) / p.alpha_period_ns);
  s.alpha_at += static_cast<std::int64_t>(periods) * p.alpha_period_ns;
  const double keep = 1 - p.alpha_gain;
  if (s.alpha_flag) {
    s.alpha = keep * s.alpha + p.alpha_gain;
    s.alpha_flag = false;
    --periods;
  }
  s.alpha = decayed(s.alpha, keep, periods);
}

// The cut of SIGCOMM 2015: target, rate, alpha, in this order; and the increase starts over.
void cut(State& s, const Params& p, std::int64_t now) {
  settle_alpha(s, p, now);
  if (p.clamp_target || s.increased(p.clamp_after_timer)) s.rates.target_bps = s.rates.current_bps;
  s.lower(p, std::max(1 - s.alpha / 2, p.min_decrease_factor));
  s.restart(p, now);
  s.cut_at = kNeverNs;
  if (!p.sampled) {
    s.alpha = (1 - p.alpha_gain) * s.alpha + p.alpha_gain;
    s.alpha_at = now;  // a quiet period is counted from the last CNP acted upon
    s.decrease_from = now;
  }
}

// Runs what came due up to and including `now`. At most one cut can be pending, and every increase
// before or after it is one call. An increase that is due at the very instant of a cut comes first.
void advance(State& s, const Params& p, std::int64_t now) {
  for (;;) {
    s.run_timer(p, std::min(now, s.cut_at));
    if (s.cut_at > now) return;
    cut(s, p, s.cut_at);
  }
}

void begin(State& s, const Params& p, const Event& event) {
  s = State{};
  s.begin(p, event);
  s.cut_at = kNeverNs;
}

void on_first_cnp(State& s, const Params& p, std::int64_t now) {
  s.limited = true;
  s.alpha = p.initial_alpha;
  s.alpha_at = now;
  s.alpha_flag = false;
  if (p.first_cnp_rate_bps != 0) {
    const std::uint64_t rate = std::min(s.rates.current_bps, p.first_cnp_rate_bps);
    s.rates.current_bps = rate;
    s.rates.target_bps = rate;
  }
  if (p.sampled && p.decrease_period_ns > 0) {
    // The checks run 1 ns behind the alpha updates, so that alpha comes first when both are due;
    // the first check cuts for this CNP.
    s.decrease_from = now + 1;
    s.cut_at = Recovery::plus(s.decrease_from, p.decrease_period_ns);
  } else if (p.first_cnp_rate_bps == 0) {
    cut(s, p, now);
  } else {
    s.restart(p, now);  // the rate just set stands for the cut
    s.decrease_from = now;
  }
}

void on_cnp(State& s, const Params& p, std::int64_t now) {
  if (!s.limited) {
    on_first_cnp(s, p, now);
    return;
  }
  if (p.sampled) {
    settle_alpha(s, p, now);
    s.alpha_flag = true;
  }
  if (s.cut_at != kNeverNs) return;  // one cut answers all CNPs of a period
  const std::int64_t since = now - s.decrease_from;
  if (p.decrease_period_ns == 0 || (!p.sampled && since >= p.decrease_period_ns)) {
    cut(s, p, now);
  } else if (p.sampled) {
    const std::int64_t check = since / p.decrease_period_ns + 1;
    s.cut_at = s.decrease_from + check * p.decrease_period_ns;
  } else {
    s.cut_at = s.decrease_from + p.decrease_period_ns;
  }
}

}  // namespace

void Dcqcn::on_event(State& s, const Params& p, const Event& event, Decision& decision) {
  if (event.signal == Signal::start) {
    begin(s, p, event);
    decision = Decision{};
  } else {
    if (s.increase_at == Recovery::kNever && !s.limited) s.follow_start(p);
    s.enforce_bounds(p);
    s.count_bytes(p, event.sent_bytes);
    advance(s, p, event.now.count);
    if (event.signal == Signal::cnp) on_cnp(s, p, event.now.count);
  }
  const bool climbing = s.climbing(p);
  decision.rate = Rate{s.rates.current_bps};
  decision.window_bytes = p.window.of(decision.rate);
  decision.wake_at = Nanos{climbing ? std::min(s.cut_at, s.increase_at) : s.cut_at};
  decision.wake_bytes =
      climbing && p.byte_counter != 0 ? p.byte_counter - s.byte_count : kUnlimited;
}

double Dcqcn::alpha_at(const State& state, const Params& params, Nanos now) {
  if (!state.limited) return params.initial_alpha;
  State copy = state;
  settle_alpha(copy, params, now.count);
  return copy.alpha;
}

Dcqcn::Params Dcqcn::make_params(std::span<const double> values, const PortFacts& facts) {
  Params p;
  p.set({.line_rate_bps = facts.link_rate.bps,
         .additive_mbps = values[kAdditiveIncreaseMbps],
         .hyper_mbps = values[kHyperIncreaseMbps],
         .fast_recovery_stages = values[kFastRecoveryStages],
         .hyper_ramp = values[kHyperRamp] != 0,
         .byte_counter = values[kByteCounter],
         .increase_timer_us = values[kIncreaseTimerUs],
         .min_rate_mbps = values[kMinRateMbps],
         .start_rate = values[kStartRate]});
  p.first_cnp_rate_bps = values[kFirstCnpRate] > 0 ? p.share(values[kFirstCnpRate]) : 0;
  p.alpha_period_ns = Params::nanos(values[kAlphaPeriodUs]);
  p.decrease_period_ns = Params::nanos(values[kDecreasePeriodUs]);
  p.alpha_gain = values[kAlphaGain];
  p.initial_alpha = values[kInitialAlpha];
  p.min_decrease_factor = values[kMinDecreaseFactor];
  p.window = rate_window(values[kWindowRoundTrips], facts);
  p.sampled = values[kCnpSampling] != 0;
  p.clamp_target = values[kClampTarget] != 0;
  p.clamp_after_timer = values[kClampAfterTimer] != 0;
  return p;
}

AlgorithmInfo Dcqcn::info() {
  AlgorithmInfo info;
  info.id = AlgorithmId::dcqcn;
  info.name = "dcqcn";
  info.summary = "rate control by CNPs, as in RoCEv2 network cards (SIGCOMM 2015)";
  info.key = ContextKey::per_qp;
  info.over_planes = true;
  info.echo = EcnEcho::cnp;
  info.wants = signal_bit(Signal::cnp);
  info.params = dcqcn_specs();
  info.profiles = dcqcn_profiles();
  return info;
}

}  // namespace paceline::cc
