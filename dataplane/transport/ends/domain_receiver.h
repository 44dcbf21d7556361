// The receiving end of XRC (InfiniBand vol. 1, annex A14). A target queue pair has no receive
// queue, completion queue or protection domain of its own. Each request names a shared receive
// queue, which provides them, and which must belong to the same domain.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class DomainReceiver {
 public:
  // The next request packet uses the queue that it names. False: the domain has no such queue, its
  // completion queue has overrun, or the message in progress uses another queue.
  static bool select(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed);
  // Removes the queue; nothing of it is used any more. A message in progress loses its receive
  // request, and its next packet is refused. Returns the queue's domain; 0: there is no such queue.
  static std::uint32_t remove(EngineCore& core, std::uint32_t number);
};

}  // namespace paceline::transport
