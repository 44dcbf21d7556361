// TIMELY: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015,
// algorithm 1: a rate that follows the gradient of the round trip between two thresholds, is raised
// below the lower and cut above the higher one. And the patched law of Zhu et al., "ECN or Delay:
// Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016, algorithm 2 (`patched`): the cut
// depends on the round trip itself and the gradient only weighs it, which gives the law the single
// fixed point that the original lacks.
//
// Implemented: both laws, the gradient filter, hyperactive increase, one update per segment and per
// minimum round trip at most; and by parameter the rules of the HPCC authors' simulator in their
// place: hyperactive increase below the lower threshold, one update per round trip. Not
// implemented: bursts of whole segments (a segment is the unit of an update here; packets are paced
// one by one), a start at the share of one among the sender's flows (`start_rate` is fixed),
// subtracting a segment's serialisation from its round trip (samples are of single packets). TIMELY
// has no window (a cap is to be had: `window_round_trips`) and no reaction to loss: it relies on a
// lossless fabric, and so does this.
// Samples are the transport's: one per round trip under go-back-N, one per XACK under selective
// repeat.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/interface/algorithm.h"
#include "cc/interface/round_trip.h"
#include "cc/rate/rate_window.h"

namespace paceline::cc {

class Timely {
 public:
  enum Param : std::size_t {
    kGradientGain,
    kMinRttUs,
    kLowUs,
    kHighUs,
    kAdditiveIncreaseMbps,
    kHyperAfter,
    kHyperFactor,
    kHyperBelowLow,
    kDecrease,
    kPatched,
    kReferenceRttUs,
    kSegmentBytes,
    kRoundTripUpdates,
    kMinRateMbps,
    kStartRate,
    kWindowRoundTrips,
    kParams
  };

  struct State {
    double rate_bps = 0;
    double rtt_diff_ns = 0;         // filtered difference of successive samples
    Nanos updated{};                // of the newest update
    std::uint64_t acked = 0;        // bytes since then
    RoundTrip round;                // round_trip_updates: since the newest update
    std::uint32_t last_rtt_ns = 0;  // sample of the newest update; 0: none yet
    std::uint32_t calm = 0;         // updates in a row that count towards hyperactive increase
  };

  struct Params {
    double link_bps = 0;
    double min_bps = 0;
    double start_bps = 0;
    double step_bps = 0;
    double gain = 0;
    double min_rtt_ns = 0;
    double low_ns = 0;
    double high_ns = 0;
    double reference_ns = 0;
    double decrease = 0;
    double hyper_factor = 0;
    std::uint32_t hyper_after = 0;
    std::uint32_t segment_bytes = 0;
    RateWindow window;
    bool patched = false;
    bool hyper_below_low = false;
    bool round_trip_updates = false;
  };

  static Params make_params(std::span<const double> values, const PortFacts& facts);
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);
  static AlgorithmInfo info();

  // Patched law: weight of the cut against the increase, 0 to 1, by the normalised gradient.
  static double weight(double gradient);
};

}  // namespace paceline::cc
