// The receiving end of XRC (InfiniBand vol. 1, annex A14): a target queue pair has neither receive
// queue, completion queue nor protection domain. Each request names the shared receive queue whose
// these are, and which must be of the same domain.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class DomainReceiver {
 public:
  // The request packet that comes next uses the queue that it names. False: there is none such in
  // the domain, its completion queue has overrun, or the message in progress uses another one.
  static bool select(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed);
  // The queue goes, and nothing of it is used any more: a message in progress loses its receive
  // request, and the next packet of it is refused. Returns its domain; 0: there is no such queue.
  static std::uint32_t remove(EngineCore& core, std::uint32_t number);
};

}  // namespace paceline::transport
