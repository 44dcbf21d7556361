// The limits of a NIC's guard, as a control request gives them.
#pragma once

namespace paceline::service {

// docs/service.md; a rule that is switched off has a negative limit.
struct GuardLimits {
  double retransmitted_share = 1e-6;  // of the data packets sent, with more than ...
  double retransmitted_packets = 10;  // ... and more than this number in a look
  double pause_share = 0.01;          // of the time, of the NIC's link towards the network
  double stall_ms = 50;               // in a look: time with messages in flight and no progress
  double drops_packets = 10;          // in a look, at the switch port towards the NIC
};

}  // namespace paceline::service
