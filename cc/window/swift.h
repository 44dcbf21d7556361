// Swift: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
// Datacenter", SIGCOMM 2020, sections 3.2 to 3.6. A window that grows by a packet per round trip
// while the delay is below a target, and shrinks in proportion to the excess at most once per round
// trip. The target is larger for small windows (flow scaling, 3.5), so that flows that share a
// queue converge, and for longer paths (topology scaling).
//
// Implemented: the fabric window and the endpoint window (3.3), of which the smaller holds; target
// scaling, windows below one packet (3.6), decrease on loss and timeout. Not implemented: ACK
// pacing and re-routing. The fabric delay is the round trip as the transport measures it: one
// sample per round trip under go-back-N, one per XACK under selective repeat. The endpoint delay is
// the time for which the far side held an acknowledgement, as XACKs report. Without XACKs there is
// none, and the endpoint window stays at its largest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/interface/algorithm.h"

namespace paceline::cc {

class Swift {
 public:
  enum Param : std::size_t {
    kBaseTargetUs,
    kHopScaleUs,
    kHops,
    kFlowScaleRangeUs,
    kFlowScaleMin,
    kFlowScaleMax,
    kIncrease,
    kDecrease,
    kMaxDecrease,
    kMinWindow,
    kMaxWindow,
    kStartWindow,
    kResetTimeouts,
    kEndpointTargetUs,
    kParams
  };

  struct State {
    double window = 0;    // packets, of the fabric
    double endpoint = 0;  // packets, of the far host
    Nanos last_decrease{};
    Nanos last_endpoint_decrease{};
    std::uint32_t delay_ns = 0;  // newest sample; 0: none yet
    std::uint32_t timeouts = 0;  // without an acknowledgement between them
  };

  struct Params {
    Rate link_rate{};
    double packet_bytes = 0;
    double packet_bits = 0;
    double base_target_ns = 0;  // topology scaling included
    double flow_scale_range_ns = 0;
    double flow_alpha = 0;  // target grows by alpha / sqrt(window) + beta, within [0, range]
    double flow_beta = 0;
    double increase = 0;
    double decrease = 0;
    double max_decrease = 0;
    double min_window = 0;
    double max_window = 0;
    double start_window = 0;
    double endpoint_target_ns = 0;  // 0 = the far host is taken to be quick
    std::uint32_t base_rtt_ns = 0;
    std::uint32_t reset_timeouts = 0;
  };

  static Params make_params(std::span<const double> values, const PortFacts& facts);
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);
  static AlgorithmInfo info();

  // Delay below which a window of `window` packets grows.
  static double target_ns(const Params& params, double window);
};

}  // namespace paceline::cc
