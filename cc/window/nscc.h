// NSCC: the network-signal congestion control of Ultra Ethernet (UE specification 1.0, transport
// layer, congestion management). A window in bytes, moved by the two signals of an acknowledgement,
// its ECN mark and its queueing delay against a target:
//
//               below the target                    at or above it
//   unmarked    proportional increase               fair increase
//   marked      nothing: the path changes           multiplicative decrease, once per round trip
//
// besides fast increase (a whole window without queueing delay opens it quickly), quick adapt
// (after a loss or an extreme delay the window becomes what was delivered in the last round trip)
// and a small constant increase. The specification itself is not quoted; law and values are those
// of the consortium's public simulator, ultraethernet/uet-htsim, sim/uec.cpp.
//
// Implemented: all of these, scaling of the constants with bandwidth and round trip, the average of
// the delay with its two exceptions. Path feedback: choosing among paths is the transport's under
// selective repeat (its path set leaves ports whose packets came marked or late); this algorithm
// does what the quadrant asks of it, to leave the window alone. Packets that switches trimmed are
// losses that are known at once: they take their bytes off the window or ask for quick adapt, as
// UE's NACKs do; profile "trimming" has the target that goes with them. Not implemented: the
// receiver's credits (RCCC: eqds.h), fast loss recovery (SLEEK: transport).
//
// Marks: XACKs count them under selective repeat. Under go-back-N a CNP marks the next
// acknowledgement, until ACKs count marks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/interface/algorithm.h"
#include "cc/window/window.h"

namespace paceline::cc {

class Nscc {
 public:
  enum Param : std::size_t {
    kTargetUs,
    kTargetShare,
    kProportional,
    kFair,
    kConstant,
    kDecrease,
    kMaxDecrease,
    kDelayGain,
    kFastDelayUs,
    kFastScale,
    kQuickAdapt,
    kQuickGate,
    kQuickThreshold,
    kAdjustBytes,
    kMinWindow,
    kMaxWindow,
    kParams
  };

  struct State {
    double window = 0;               // bytes
    double increase = 0;             // gathered since the last adjustment: bytes times window
    double average_ns = 0;           // of the queueing delay
    double unhurried = 0;            // bytes in a row that met no queue, for fast increase
    Nanos adjusted{};                // the newest constant increase
    Nanos decreased{};               // the newest multiplicative decrease
    Nanos quick_until{};             // end of the period whose deliveries quick adapt counts
    std::uint64_t adjust_bytes = 0;  // acknowledged since the last adjustment
    std::uint64_t delivered = 0;     // in the period of quick adapt
    std::uint64_t ignored = 0;       // acknowledged or lost since the newest quick adapt
    std::uint64_t to_ignore = 0;     // in flight then: their marks are of the past
    std::uint32_t rtt_ns = 0;        // newest sample; 0: none yet
    std::uint32_t base_rtt_ns = 0;   // the least so far, or the path's if that is less
    bool hurrying = false;           // fast increase continues
    bool lost = false;               // since the newest quick adapt
    bool exact = false;              // ACKs count marks: CNPs say nothing new
    bool notified = false;           // a CNP marks the next acknowledgement
    bool periods = false;            // quick_until is set
  };

  struct Params {
    WindowPath path;
    double target_ns = 0;
    double proportional = 0;  // bytes of increase per byte acknowledged and ns below the target
    double fair = 0;          // bytes per byte
    double constant = 0;      // bytes per round trip
    double decrease = 0;
    double max_decrease = 0;
    double delay_gain = 0;  // per packet
    double fast_delay_ns = 0;
    double fast_scale = 0;  // bytes per byte
    double quick_gate = 0;  // share of the largest window
    double quick_threshold_ns = 0;
    double adjust_bytes = 0;
    double min_window = 0;  // bytes
    double max_window = 0;
    bool quick_adapt = false;
  };

  static Params make_params(std::span<const double> values, const PortFacts& facts);
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);
  static AlgorithmInfo info();
};

}  // namespace paceline::cc
