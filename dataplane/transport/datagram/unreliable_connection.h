// Unreliable connection (InfiniBand vol. 1, 9.8.2): nothing is acknowledged or sent again. A
// request is complete when its last packet has left. The responder takes a message whole or not at
// all: after a gap it drops the rest of the message, and the next First or Only packet restarts the
// sequence.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/message/answers.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class UnreliableConnection {
 public:
  // Whether UC or UD can do what the request asks for.
  static PostResult check(EngineCore& core, const QueuePair& qp, const QueuedRequest& request);
  // Makes `packet` the one at next_psn. False as in Requester::build_next.
  static bool build(EngineCore& core, QueuePair& qp, Packet& packet);
  // The packet at next_psn is built; with the last one its request is complete (9.8.2.1).
  static void sent_unacknowledged(EngineCore& core, QueuePair& qp, std::uint32_t peer,
                                  std::uint32_t payload, bool last);
  // A request packet of UC.
  static RequestOutcome accept(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed,
                               const Packet& packet);

 private:
  static RequestOutcome drop_message(EngineCore& core, QueuePair& qp, std::uint64_t& reason);
};

}  // namespace paceline::transport
