// Unreliable datagrams (InfiniBand vol. 1, 9.8.3): one packet per message, each to the destination
// of its address handle. A queue pair sends in order, so at any time it belongs to the congestion
// context of its oldest datagram.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/message/answers.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class Datagram {
 public:
  // The congestion context that pays for a request: the queue pair's, or the address handle's.
  static std::uint32_t context_of(const EngineCore& core, const QueuePair& qp,
                                  const QueuedRequest& request) {
    return qp.config.type == QpType::ud ? core.handles[request.address_handle >> 8].context
                                        : qp.context;
  }
  // Makes `packet` the datagram at the cursor. False as in Requester::build_next.
  static bool build(EngineCore& core, QueuePair& qp, Packet& packet);
  // A datagram for this queue pair: GRH and payload into a receive request.
  static RequestOutcome accept(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed,
                               const Packet& packet);
};

}  // namespace paceline::transport
