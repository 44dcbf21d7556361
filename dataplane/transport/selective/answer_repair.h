// Selective repeat: answers to READs and atomics. The peer sends them once, in the order of their
// sequence numbers, and nothing tells it which have arrived; this end knows which are missing. An
// answer is late when one with a higher number is here. It is lost when it has been late for longer
// than the tolerated reordering; then it is asked for, range by range, by READ requests of their
// own. An answer that was asked for is lost again when one that was asked for later is here, or
// when it has taken twice as long as such answers take (after RFC 8985, as Scoreboard does with
// packets). An atomic is repeated as a request: the peer keeps its result.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class AnswerRepair {
 public:
  // Only the headers of a READ response for `qp` have come.
  static void on_trimmed(EngineCore& core, QueuePair& qp, Psn psn);
  // Builds the oldest request for missing answers.
  static bool build_ask(EngineCore& core, QueuePair& qp, Packet& packet);
  // The answer `psn` is here.
  static void note_answer(EngineCore& core, QueuePair& qp, Psn psn);
  // An answer came twice: be more patient.
  static void note_repeated(EngineCore& core, QueuePair& qp);
  // Answers before `end` are late.
  static void note_late(EngineCore& core, QueuePair& qp, Psn end);
  // The atomic at the head waits for its answer.
  static void note_atomic(EngineCore& core, QueuePair& qp);
  // Asks for answers that have been late for too long. True: there were some.
  static bool ask_missing(EngineCore& core, QueuePair& qp);
  // Asks for the answer `psn`. False: there is no room for the request.
  static bool ask(EngineCore& core, QueuePair& qp, Psn psn);
};

}  // namespace paceline::transport
