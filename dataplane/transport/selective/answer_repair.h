// Selective repeat: answers to READs and atomics. The peer sends them once, in the order of their
// sequence numbers, and nothing tells it what has come; here it is known which are missing. An
// answer is late when one with a higher number is here, lost when it has been late for longer than
// the tolerated reordering, and then asked for, range by range, by READ requests of their own. What
// was asked for is lost once more when something that was asked for later is here, or when it has
// taken twice as long as such answers take (after RFC 8985, as Scoreboard does with packets). An
// atomic is repeated as a request: the peer keeps its result.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class AnswerRepair {
 public:
  // Only the headers of a READ response for `qp` have come.
  static void on_trimmed(EngineCore& core, QueuePair& qp, Psn psn);
  // The oldest request for missing answers.
  static bool build_ask(EngineCore& core, QueuePair& qp, Packet& packet);
  // The answer `psn` is here.
  static void note_answer(EngineCore& core, QueuePair& qp, Psn psn);
  // An answer came twice: more patience.
  static void note_repeated(EngineCore& core, QueuePair& qp);
  // Answers before `end` are late.
  static void note_late(EngineCore& core, QueuePair& qp, Psn end);
  // The atomic at the head waits for its answer.
  static void note_atomic(EngineCore& core, QueuePair& qp);
  // Asks for what has been late for too long. True: there was something.
  static bool ask_missing(EngineCore& core, QueuePair& qp);
  // Asks for the answer `psn`. False: there is no room for the request.
  static bool ask(EngineCore& core, QueuePair& qp, Psn psn);
};

}  // namespace paceline::transport
