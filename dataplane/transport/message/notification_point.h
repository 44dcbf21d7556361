// The notification point of congestion control: CE-marked data makes it send CNPs, at most one per
// interval and flow.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class NotificationPoint {
 public:
  // CE-marked data has arrived, requests or READ responses: tells their sender.
  static void on_marked(EngineCore& core, QueuePair& qp);
  // The same for a datagram. Only the packet tells who its sender is.
  static void on_marked_datagram(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed,
                                 const Packet& packet);
};

}  // namespace paceline::transport
