// DCQCN: the rate control of RoCEv2 network cards, reaction point (sender) part.
//
// Paper: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015,
// section 3. Implemented: alpha update and decay, rate cut with target clamping and a bound on one
// cut, the rate-decrease monitor period, rate-increase timer and byte counter, fast recovery,
// additive and hyper increase, minimum rate, start at line rate, rate on first CNP; and both
// readings of a CNP:
// - at once (the paper): a CNP cuts the rate and raises alpha on arrival; alpha decays after every
//   alpha period without one;
// - sampled (ConnectX, and the HPCC authors' simulator): a CNP only sets two flags; the alpha
//   update looks at one every alpha period, the rate-decrease check at the other every decrease
//   period.
// Not implemented: release of the rate limiter at line rate (ConnectX forgets alpha then), the
// accelerated timer of QCN's hyper increase, reaction to loss (DCQCN has none). Notification point
// (CNP interval) and marking belong to transport and fabric. Defaults: see dcqcn_params.h.
//
// There are no timer events. Timers are virtual: every event first executes the timers that came
// due before it, in the order of time, in bounded work however long the gap. The rate path
// (increase timer, decrease check) uses closed forms in integers, so any split of a gap gives the
// same bits; alpha is updated only when it is read or a CNP changes it, and so does not depend on
// the split either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "cc/interface/algorithm.h"
#include "cc/rate/rate_window.h"
#include "cc/rate/recovery.h"

namespace paceline::cc {

class Dcqcn {
 public:
  enum Param : std::size_t {
    kAlphaGain,
    kAlphaPeriodUs,
    kInitialAlpha,
    kCnpSampling,
    kDecreasePeriodUs,
    kMinDecreaseFactor,
    kClampTarget,
    kClampAfterTimer,
    kFirstCnpRate,
    kIncreaseTimerUs,
    kByteCounter,
    kFastRecoveryStages,
    kAdditiveIncreaseMbps,
    kHyperIncreaseMbps,
    kHyperRamp,
    kMinRateMbps,
    kStartRate,
    kWindowRoundTrips,
    kParams
  };

  struct Params : RecoveryParams {
    std::uint64_t first_cnp_rate_bps = 0;  // 0 = none
    std::int64_t alpha_period_ns = 0;      // >= 1
    std::int64_t decrease_period_ns = 0;   // 0 = every CNP cuts
    double alpha_gain = 0;
    double initial_alpha = 0;
    double min_decrease_factor = 0;  // rate after a cut / rate before, at least
    RateWindow window;
    bool sampled = false;
    bool clamp_target = false;
    bool clamp_after_timer = false;
  };

  // One context. Times are nanoseconds; kNeverNanos.count where nothing is due.
  struct State : Recovery {
    std::int64_t cut_at = 0;         // rate cut that is already decided
    std::int64_t decrease_from = 0;  // sampled: origin of the checks; else: the last cut
    std::int64_t alpha_at = 0;       // alpha holds up to this instant
    double alpha = 0;
    bool limited = false;         // a CNP has been received
    bool alpha_flag = false;      // sampled: CNP in the alpha period that began at alpha_at
    std::uint8_t unused[6] = {};  // keeps every byte defined: states are compared and hashed
  };

  // values: in the order of Param, already checked by resolve_params; facts.link_rate must be set.
  static Params make_params(std::span<const double> values, const PortFacts& facts);

  // Events must come in the order of time. Bytes of the event count as sent before any timer that
  // came due since the last event: wake_at asks for a tick before the first send after it.
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);

  // alpha as a rate cut at `now` would use it. For telemetry and tests; changes nothing.
  static double alpha_at(const State& state, const Params& params, Nanos now);

  static AlgorithmInfo info();
};

static_assert(std::is_trivially_copyable_v<Dcqcn::State> && sizeof(Dcqcn::State) == 80);
static_assert(sizeof(Dcqcn::State) <= kStateBytes);

}  // namespace paceline::cc
