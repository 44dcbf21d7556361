// DCTCP: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, and RFC 8257, as the window of a
// RoCE queue pair. alpha estimates the share of bytes that arrive marked, once per round trip;
// marks cut the window by alpha / 2, at most once per round trip; unmarked bytes let it grow as TCP
// does.
//
// Implemented: RFC 8257, 3.3 (alpha, cut), slow start, congestion avoidance, halving on loss (3.5),
// one packet after a timeout, no growth of a window that is not used (as Linux). Own: windows below
// a packet are paced, as Swift does, where `min_window` allows them. A start fills the path at once
// if `start_window` says so. Not implemented: delayed-ACK state machine of the receiver (3.2: XACKs
// count marked bytes exactly), SYN and retransmission marking (3.4).
//
// Where the signal comes from. Under selective repeat XACKs count the marked bytes, and alpha is
// exact. Under go-back-N there are CNPs only: one says that the round trip had marks and not how
// many, so it counts as a round trip marked whole; with `transport.cnp_interval` longer than a
// round trip, alpha is then the share of round trips with a CNP. The first marks that an ACK counts
// silence CNPs for good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/interface/algorithm.h"
#include "cc/window/window.h"

namespace paceline::cc {

class Dctcp {
 public:
  enum Param : std::size_t {
    kGain,
    kInitialAlpha,
    kIncrease,
    kLossDecrease,
    kStartWindow,
    kMinWindow,
    kMaxWindow,
    kParams
  };

  struct State {
    double window = 0;     // bytes
    double threshold = 0;  // of slow start
    double alpha = 0;
    RoundTrip round;
    std::uint64_t acked = 0;  // of this round trip
    std::uint64_t marked = 0;
    std::uint32_t rtt_ns = 0;  // newest sample; 0: none yet
    bool cut = false;          // in this round trip
    bool notified = false;     // by a CNP, in this round trip
    bool exact = false;        // ACKs count marks: CNPs say nothing new
  };

  struct Params {
    WindowPath path;
    double gain = 0;
    double initial_alpha = 0;
    double increase = 0;  // bytes per round trip
    double loss_decrease = 0;
    double start_window = 0;  // bytes
    double min_window = 0;
    double max_window = 0;
  };

  static Params make_params(std::span<const double> values, const PortFacts& facts);
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);
  static AlgorithmInfo info();
};

}  // namespace paceline::cc
