#include "cc/rate/dcqcn.h"

#include <algorithm>

#include "cc/rate/dcqcn_params.h"

namespace paceline::cc {
namespace {

using State = Dcqcn::State;
using Params = Dcqcn::Params;

constexpr std::int64_t kNeverNs = kNeverNanos.count;

std::int64_t plus(std::int64_t at, std::int64_t span) {
  return at > kNeverNs - span ? kNeverNs : at + span;
}

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
// others quiet. Called only where alpha is read or a CNP comes in, so its rounding depends on CNPs
// and cuts alone and never on how often somebody looked in between.
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

void restart_increase(State& s, const Params& p, std::int64_t now) {
  s.rates.timer_stage = 0;
  s.rates.byte_stage = 0;
  s.byte_count = 0;
  s.increase_at = plus(now, p.increase_timer_ns);
}

// The cut of SIGCOMM 2015: target, rate, alpha, in this order; and the increase starts over.
void cut(State& s, const Params& p, std::int64_t now) {
  settle_alpha(s, p, now);
  const bool increased = s.rates.byte_stage > 0 || (p.clamp_after_timer && s.rates.timer_stage > 0);
  if (p.clamp_target || increased) s.rates.target_bps = s.rates.current_bps;
  const double factor = std::max(1 - s.alpha / 2, p.min_decrease_factor);
  const auto lowered =
      static_cast<std::uint64_t>(static_cast<double>(s.rates.current_bps) * factor);
  s.rates.current_bps = std::max(p.min_rate_bps, lowered);
  restart_increase(s, p, now);
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
    const std::int64_t until = std::min(now, s.cut_at);
    if (s.increase_at <= until) {
      const std::int64_t expiries = (until - s.increase_at) / p.increase_timer_ns + 1;
      dcqcn::increase(s.rates, p.increase, dcqcn::Cause::timer,
                      static_cast<std::uint64_t>(expiries));
      s.increase_at += (expiries - 1) * p.increase_timer_ns;
      s.increase_at = plus(s.increase_at, p.increase_timer_ns);
    }
    if (s.cut_at > now) return;
    cut(s, p, s.cut_at);
  }
}

void count_bytes(State& s, const Params& p, std::uint64_t bytes) {
  // Before the first cut there is nothing to recover from: the limiter does not run.
  if (p.byte_counter == 0 || s.increase_at == kNeverNs) return;
  const std::uint64_t room = ~std::uint64_t{0} - s.byte_count;
  s.byte_count += std::min(bytes, room);
  if (s.byte_count < p.byte_counter) return;
  dcqcn::increase(s.rates, p.increase, dcqcn::Cause::bytes, s.byte_count / p.byte_counter);
  s.byte_count %= p.byte_counter;
}

void begin(State& s, const Params& p, const Event& event) {
  s = State{};
  s.increase_at = kNeverNs;
  s.cut_at = kNeverNs;
  std::uint64_t rate = p.start_rate_bps;
  if (event.handover != nullptr && event.handover->rate.bps != 0) {
    rate = std::clamp(event.handover->rate.bps, p.min_rate_bps, rate);
  }
  s.rates.current_bps = rate;
  s.rates.target_bps = rate;
  // Below the line rate there is something to climb even before the first CNP.
  if (rate < p.increase.line_rate_bps) restart_increase(s, p, event.now.count);
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
    // The checks run 1 ns behind the alpha updates, so that on a common instant alpha comes first;
    // this CNP is cut for at the first of them.
    s.decrease_from = now + 1;
    s.cut_at = plus(s.decrease_from, p.decrease_period_ns);
  } else if (p.first_cnp_rate_bps == 0) {
    cut(s, p, now);
  } else {
    restart_increase(s, p, now);  // the rate just set stands for the cut
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

// Parameters may have changed since the last event; the rates keep their bounds at once.
void enforce_bounds(State& s, const Params& p) {
  if (s.increase_at == kNeverNs && !s.limited) {  // untouched so far: follows the start rate
    s.rates.current_bps = p.start_rate_bps;
    s.rates.target_bps = p.start_rate_bps;
  }
  s.rates.target_bps = std::clamp(s.rates.target_bps, p.min_rate_bps, p.increase.line_rate_bps);
  s.rates.current_bps = std::clamp(s.rates.current_bps, p.min_rate_bps, s.rates.target_bps);
}

std::int64_t nanos(double us) { return static_cast<std::int64_t>(us * 1000 + 0.5); }
std::uint64_t bps(double mbps) { return static_cast<std::uint64_t>(mbps * 1e6 + 0.5); }

}  // namespace

void Dcqcn::on_event(State& s, const Params& p, const Event& event, Decision& decision) {
  if (event.signal == Signal::start) {
    begin(s, p, event);
    decision = Decision{};
  } else {
    enforce_bounds(s, p);
    count_bytes(s, p, event.sent_bytes);
    advance(s, p, event.now.count);
    if (event.signal == Signal::cnp) on_cnp(s, p, event.now.count);
  }
  const bool climbing = s.increase_at != kNeverNs && !dcqcn::at_rest(s.rates, p.increase);
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
  const std::uint64_t line = facts.link_rate.bps;
  const auto share = [line](double of_line) {
    return static_cast<std::uint64_t>(static_cast<double>(line) * of_line);
  };
  Params p;
  p.increase.line_rate_bps = line;
  p.increase.additive_bps = bps(values[kAdditiveIncreaseMbps]);
  p.increase.hyper_bps = bps(values[kHyperIncreaseMbps]);
  p.increase.fast_recovery_stages = static_cast<std::uint32_t>(values[kFastRecoveryStages]);
  p.increase.hyper_ramp = values[kHyperRamp] != 0;
  p.byte_counter = static_cast<std::uint64_t>(values[kByteCounter]);
  p.increase.byte_counter_on = p.byte_counter != 0;
  // resolve_params has refused a minimum above the link rate. Start and first-CNP rate are shares
  // of the line, and the floor holds for them as for every other rate.
  p.min_rate_bps = bps(values[kMinRateMbps]);
  p.start_rate_bps = std::max(p.min_rate_bps, share(values[kStartRate]));
  p.first_cnp_rate_bps =
      values[kFirstCnpRate] > 0 ? std::max(p.min_rate_bps, share(values[kFirstCnpRate])) : 0;
  p.alpha_period_ns = nanos(values[kAlphaPeriodUs]);
  p.decrease_period_ns = nanos(values[kDecreasePeriodUs]);
  p.increase_timer_ns = nanos(values[kIncreaseTimerUs]);
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
