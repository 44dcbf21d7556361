// The effects of an acknowledgement, whichever packet brought it: the window moves, requests
// complete, the timer restarts, and the congestion context is told.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class AckProgress {
 public:
  static void on_cnp(EngineCore& core, QueuePair& qp);
  // The status with which a request completes that was refused for this reason.
  static CompletionStatus status_of(wire::NakCode code);
  // A NAK of a packet that was never sent: the far queue pair is gone. Fails this one, and returns
  // true.
  static bool on_disconnect_nak(EngineCore& core, QueuePair& qp, wire::Aeth aeth, Psn expected);
  // SendWindow::advance with all its effects: completions, timer, order.
  static std::uint64_t progress(EngineCore& core, QueuePair& qp, Psn next);
  static std::uint32_t sample_rtt(EngineCore& core, Picos sent_at);  // ns, 0: none
  // Tells the context of `acked` bytes; its window may have room again.
  static void report_ack(EngineCore& core, QueuePair& qp, std::uint64_t acked, std::uint32_t rtt_ns,
                         std::uint32_t marked_bytes = 0, std::uint32_t host_delay_ns = 0,
                         const IntStack* int_stack = nullptr);
};

}  // namespace paceline::transport
