// The timer of a queue pair as a requester: retransmission under go-back-N, what selective repeat
// waits for, and the bound on its rate (Engine::limit_rate). Deadlines count awake time
// (EngineCore::awake).
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class RequesterTimer {
 public:
  // A bound on what requests send; a rate of 0: none (Engine::limit_rate).
  static void limit_rate(EngineCore& core, QueuePair& qp, Rate rate, std::uint32_t burst_bytes);
  // A packet of `bytes` on the wire was built, in a queue pair with a limit: when the next may be.
  static void charge_limit(EngineCore& core, QueuePair& qp, std::uint32_t bytes);
  // Selective repeat: how long nothing may be heard before the oldest packet goes out again.
  static Picos probe_after(EngineCore& core, const QueuePair& qp);
  // How much later than a packet sent after it a packet may come before it is lost.
  static Picos reorder_wait(const SelectiveSend& s);
  // The timer follows from what selective repeat waits for next.
  static void arm_selective(EngineCore& core, QueuePair& qp);
  // Go-back-N: a full retransmission timeout from now.
  static void arm(EngineCore& core, QueuePair& qp);
  // The timer fires at `at` at the latest; nothing for kNoTimeout and beyond.
  static void set(EngineCore& core, QueuePair& qp, Picos at);
};

}  // namespace paceline::transport
