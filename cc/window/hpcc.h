// HPCC: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 3 and algorithm
// 1. Every acknowledgement brings what the switches recorded when the data passed; from two of them
// the sender knows how many bytes each link of the path has in flight for its bandwidth-delay
// product. The window moves to where the fullest link would be at eta of that.
//
// Implemented: the estimate of the fullest link and its filter over a round trip; the window of
// every acknowledgement from a reference window that moves once per round trip (3.2, "fast
// reaction without overreaction"); additive increase for `max_stage` round trips before the next
// multiplicative one (3.3); pacing of the window over T. Own: a cut on loss (`loss_decrease`; the
// paper's fabric loses nothing), and a path that changed is measured again from its second
// acknowledgement on (the paper compares path ids to the same end). Not implemented: a rate for
// each link (the simulator's MULTI_RATE, off in its own runs), shorter windows after congestion was
// found at the receiver, PINT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/interface/algorithm.h"
#include "cc/window/int_links.h"
#include "cc/window/window.h"

namespace paceline::cc {

class Hpcc {
 public:
  enum Param : std::size_t {
    kEta,
    kMaxStage,
    kIncrease,
    kBaseRttUs,
    kMinRate,
    kLossDecrease,
    kIntMulti,
    kPayloadWindow,
    kParams
  };

  struct State {
    double window = 0;       // bytes
    double reference = 0;    // W^c: the window that all of a round trip's answers start from
    double utilisation = 0;  // U, filtered: 1 = the path full and its queues empty
    RoundTrip round;
    Nanos last_loss{};        // the newest cut for loss
    std::uint32_t stage = 0;  // round trips of additive increase since the last multiplicative step
    IntLinks links;
  };

  struct Params {
    WindowPath path;
    double eta = 0;
    double increase = 0;  // W_AI, bytes
    double base_ns = 0;   // T
    double min_window = 0;
    double max_window = 0;
    double loss_decrease = 0;
    std::uint32_t max_stage = 0;
    IntUnits units;
    double wire_share = 1;  // bytes on the wire that may be in flight for each of the window
  };

  static Params make_params(std::span<const double> values, const PortFacts& facts);
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);
  static AlgorithmInfo info();
};

}  // namespace paceline::cc
