// The end of a queue pair's work: it fails and everything is flushed, or its work is taken away.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class QpFailure {
 public:
  // The queue pair is in error: the request that `psn` belongs to (the oldest, when none does)
  // completes with `status`, all others with `flushed`.
  static void fail(EngineCore& core, QueuePair& qp, CompletionStatus status, Psn psn);
  static void fail(EngineCore& core, QueuePair& qp, CompletionStatus status) {
    fail(core, qp, status, qp.requester.position.oldest());
  }
  // Takes all work away without completing it; the queue pair stays in its context.
  static void drop_work(EngineCore& core, QueuePair& qp);
  // A request failed for a local reason: the end of a reliable connection; UC and UD go to SQE.
  static void fail_sends(EngineCore& core, QueuePair& qp, CompletionStatus status);
  // The receive request of the message in progress completes with `status`.
  static void fail_receive(EngineCore& core, QueuePair& qp, CompletionStatus status);
  // Gives back the packets that came ahead of the one expected: they will not be delivered.
  static void drop_early(EngineCore& core, QueuePair& qp);

 private:
  static void drop_datagrams(EngineCore& core, QueuePair& qp);
};

}  // namespace paceline::transport
