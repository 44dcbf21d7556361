// PowerTCP: Addanki, Michel and Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter
// Networks", NSDI 2022, algorithm 1: the variant with telemetry of switches. Power is voltage
// (bytes queued at a link plus its bandwidth-delay product) times current (the rate at which bytes
// arrive there: growth of the queue plus what was sent), normalised by what the link has when it is
// full and its queue empty. The window moves to window / power + beta, by gamma, with every
// acknowledgement.
//
// Implemented: the normalised power of the link that has most of it, its filter over a round trip,
// the window in force a round trip ago as the one to divide, pacing of the window over the unloaded
// round trip. Own: a floor of the power (an idle path has none), and a cut on loss
// (`loss_decrease`; the paper knows no loss). Not implemented: the variant without telemetry here;
// it is theta-powertcp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/interface/algorithm.h"
#include "cc/window/int_links.h"
#include "cc/window/window.h"

namespace paceline::cc {

class PowerTcp {
 public:
  enum Param : std::size_t {
    kGamma,
    kFlows,
    kBaseRttUs,
    kLossDecrease,
    kMinRate,
    kMaxWindow,
    kParams
  };

  struct State {
    double window = 0;      // bytes
    double old_window = 0;  // when the round trip began
    double power = 0;       // filtered, normalised: 1 = the path full and its queues empty
    RoundTrip round;
    Nanos last_loss{};  // the newest cut for loss
    IntLinks links;
  };

  struct Params {
    WindowPath path;
    double gamma = 0;
    double beta = 0;     // bytes
    double base_ns = 0;  // tau
    double loss_decrease = 0;
    double min_window = 0;
    double max_window = 0;
  };

  static Params make_params(std::span<const double> values, const PortFacts& facts);
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);
  static AlgorithmInfo info();
};

}  // namespace paceline::cc
