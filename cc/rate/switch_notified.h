// A reactive rate control whose cuts come from switches.
//
// The cut is the reaction point of quantised congestion notification (IEEE 802.1Qau-2010; Alizadeh
// et al., "Data center transport mechanisms: congestion control theory and IEEE standardization",
// Allerton 2008). A switch samples packets in a long or growing queue and tells their source, in 6
// bits, how congested the queue is. The source cuts its rate by that share, at most by half, and
// recovers by QCN's stages, which DCQCN shares (recovery.h). It ignores the receiver: CNPs,
// acknowledgements, losses and timeouts.
//
// Implemented: the cut, fast recovery, active and hyper-active increase by timer and byte counter.
// Not implemented: halved timer and byte counter in active increase, their jitter, the release of
// the rate limiter at line rate. The congestion point is the fabric's
// (dataplane/fabric/switching/congestion_points.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "cc/interface/algorithm.h"
#include "cc/rate/rate_window.h"
#include "cc/rate/recovery.h"

namespace paceline::cc {

class SwitchNotified {
 public:
  enum Param : std::size_t {
    kDecreaseGain,
    kMinDecreaseFactor,
    kClampAfterTimer,
    kIncreaseTimerUs,
    kByteCounter,
    kFastRecoveryStages,
    kAdditiveIncreaseMbps,
    kHyperIncreaseMbps,
    kMinRateMbps,
    kStartRate,
    kWindowRoundTrips,
    kParams
  };

  struct Params : RecoveryParams {
    double decrease_gain = 0;        // of the rate, for each step of feedback
    double min_decrease_factor = 0;  // rate after a cut / rate before, at least
    RateWindow window;
    bool clamp_after_timer = false;
  };

  struct State : Recovery {
    bool limited = false;         // a notice has been received
    std::uint8_t unused[7] = {};  // keeps every byte defined: states are compared and hashed
  };

  static Params make_params(std::span<const double> values, const PortFacts& facts);
  // As with DCQCN, events come in the order of time, and bytes count before timers.
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);
  static AlgorithmInfo info();
};

static_assert(std::is_trivially_copyable_v<SwitchNotified::State> &&
              sizeof(SwitchNotified::State) == 48);

}  // namespace paceline::cc
