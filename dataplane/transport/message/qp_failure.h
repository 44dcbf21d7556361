// The end of a queue pair's work: it fails and everything is flushed, or its work is taken away.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class QpFailure {
 public:
  // Puts the queue pair into error. The request that `psn` belongs to (the oldest, if there is
  // none) completes with `status`, all others with `flushed`.
  static void fail(EngineCore& core, QueuePair& qp, CompletionStatus status, Psn psn);
  static void fail(EngineCore& core, QueuePair& qp, CompletionStatus status) {
    fail(core, qp, status, qp.requester.position.oldest());
  }
  // Takes all work away without completing it; the queue pair stays in its context.
  static void drop_work(EngineCore& core, QueuePair& qp);
  // A request failed for a local reason: ends a reliable connection; puts UC and UD into SQE.
  static void fail_sends(EngineCore& core, QueuePair& qp, CompletionStatus status);
  // Completes the receive request of the message in progress with `status`.
  static void fail_receive(EngineCore& core, QueuePair& qp, CompletionStatus status);
  // Frees the packets that came ahead of the expected one: they will not be delivered.
  static void drop_early(EngineCore& core, QueuePair& qp);

 private:
  static void drop_datagrams(EngineCore& core, QueuePair& qp);
};

}  // namespace paceline::transport
