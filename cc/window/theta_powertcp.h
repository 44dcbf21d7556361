// theta-PowerTCP: Addanki, Michel and Schmid, "PowerTCP: Pushing the Performance Limits of
// Datacenter Networks", NSDI 2022, algorithm 2: the variant that needs no telemetry of switches.
// Power is voltage (bytes queued plus bandwidth-delay product) times current (arrival rate at the
// queue); measured by the sender as (gradient of the round trip + 1) x round trip, normalised by
// the unloaded round trip. The window moves to window / power + beta, by gamma.
//
// Implemented: the normalised power, its filter over a round trip, one update per round trip,
// pacing of the window over the unloaded round trip. The paper divides the window that was in force
// when the acknowledged packet was sent; with one update per round trip, told by a packet that was
// sent after the last one, that is the window in force now. Own: a floor of the gradient term (as
// the authors' simulator has; samples of different paths can fall faster than time passes), and a
// cut on loss (`loss_decrease`; the paper knows no loss). Not implemented: the variant with
// telemetry (algorithm 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/interface/algorithm.h"
#include "cc/window/window.h"

namespace paceline::cc {

class ThetaPowerTcp {
 public:
  enum Param : std::size_t {
    kGamma,
    kFlows,
    kBaseRttUs,
    kRttSlack,
    kGradientFloor,
    kLossDecrease,
    kMinWindow,
    kMaxWindow,
    kParams
  };

  struct State {
    double window = 0;  // bytes
    double power = 0;   // filtered, normalised: 1 = the path full and its queue empty
    RoundTrip round;
    Nanos sampled{};                 // when rtt_ns was
    Nanos last_loss{};               // the newest cut for loss
    std::uint32_t rtt_ns = 0;        // newest sample; 0: none yet
    std::uint32_t least_rtt_ns = 0;  // so far; 0: none yet
  };

  struct Params {
    WindowPath path;
    double gamma = 0;
    double beta = 0;     // bytes
    double base_ns = 0;  // tau at most
    double rtt_slack = 0;
    double gradient_floor = 0;
    double loss_decrease = 0;
    double min_window = 0;
    double max_window = 0;
    bool measured = false;  // tau falls to the least sample
  };

  static Params make_params(std::span<const double> values, const PortFacts& facts);
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);
  static AlgorithmInfo info();
};

}  // namespace paceline::cc
