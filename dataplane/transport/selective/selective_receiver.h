// The responder under selective repeat: packets ahead of the expected one. They are not lost: a
// WRITE Only is placed at once (its RETH says where), and any other packet is held until its turn.
// Completions and message numbers still advance in order.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/message/answers.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class SelectiveReceiver {
 public:
  // A packet ahead of the expected one.
  static RequestOutcome accept_early(EngineCore& core, QueuePair& qp,
                                     const wire::ParsedPacket& parsed, const Packet& packet);
  // The expected sequence number has moved on from `was`.
  static void release_below(EngineCore& core, QueuePair& qp, Psn was);

 private:
  static bool place_early(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed,
                          const Packet& packet);
};

}  // namespace paceline::transport
