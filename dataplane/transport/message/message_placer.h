// Places the payload of SENDs and WRITEs: takes the receive request, checks what the peer may
// write, and completes the message.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/message/scatter_gather.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class MessagePlacer {
 public:
  enum class Begin : std::uint8_t { done, not_ready, no_access };

  // The first packet of a message: takes its receive request, or finds the region that it writes.
  // If the result is not `done`, nothing has changed.
  static Begin begin(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed);
  // Copies the payload, if any, to its destination. Pending: the packet comes again as a whole.
  static MemoryResult place(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed,
                            const Packet& packet);
  // The packet is taken: its payload is placed, or it has none.
  static void placed(EngineCore& core, QueuePair& qp, std::uint32_t bytes) {
    qp.responder.message.placed(bytes);
    ++core.counters.rx_data_packets;
    core.counters.rx_data_bytes += bytes;
  }
  // The last packet of a message has been placed: MSN, and the completion if one is due.
  static void finish(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed);
  // The region that a WRITE goes to; nullptr if its peer may not write there.
  static const Region* writable(EngineCore& core, const QueuePair& qp, const wire::Reth& reth);
  // Takes the next receive request, unless the message has one. False: there is none.
  static bool take_receive(QueuePair& qp);
  // The segments of the receive request in use.
  static SegmentAccess received_into(EngineCore& core, const QueuePair& qp, std::uint64_t offset,
                                     std::uint32_t bytes);
};

}  // namespace paceline::transport
