// The timer of a queue pair as a requester: retransmission under go-back-N, the waits of selective
// repeat, and the limit on its rate (Engine::limit_rate). Deadlines count awake time
// (EngineCore::awake).
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class RequesterTimer {
 public:
  // Limits the rate of requests; a rate of 0: no limit (Engine::limit_rate).
  static void limit_rate(EngineCore& core, QueuePair& qp, Rate rate, std::uint32_t burst_bytes);
  // A packet of `bytes` on the wire was built in a queue pair with a limit: computes when the next
  // may be built.
  static void charge_limit(EngineCore& core, QueuePair& qp, std::uint32_t bytes);
  // Selective repeat: how long silence may last before the oldest packet is sent again.
  static Picos probe_after(EngineCore& core, const QueuePair& qp);
  // How much later than a packet that was sent after it a packet may come before it counts as lost.
  static Picos reorder_wait(const SelectiveSend& s);
  // Sets the timer for whatever selective repeat waits for next.
  static void arm_selective(EngineCore& core, QueuePair& qp);
  // Go-back-N: sets a full retransmission timeout from now.
  static void arm(EngineCore& core, QueuePair& qp);
  // The timer fires at `at` at the latest; does nothing for kNoTimeout and beyond.
  static void set(EngineCore& core, QueuePair& qp, Picos at);
};

}  // namespace paceline::transport
