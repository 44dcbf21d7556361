// The send queue as a sequence of packets: what lies between two sequence numbers, what is
// acknowledged and complete, and going back to the oldest unacknowledged packet (go-back-N).
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class SendWindow {
 public:
  // Bytes of a run of packets.
  struct Span {
    std::uint64_t payload = 0;
    std::uint64_t wire = 0;
  };

  // The payload bytes of packet `packet` of a request.
  static std::uint32_t payload_of(const QueuePair& qp, const SendEntry& entry,
                                  std::uint32_t packet);
  // The wire bytes of that packet.
  static std::uint32_t wire_of(const EngineCore& core, const QueuePair& qp, const SendEntry& entry,
                               std::uint32_t packet);
  // The wire bytes of the request packet of a READ or atomic.
  static std::uint32_t request_wire_of(const EngineCore& core, const QueuePair& qp,
                                       const SendEntry& entry);
  // Everything before `next` is acknowledged. Returns the newly acknowledged wire bytes.
  static std::uint64_t advance(EngineCore& core, QueuePair& qp, Psn next);
  // Completes the requests that end before `next`.
  static void complete_before(EngineCore& core, QueuePair& qp, Psn next);
  // Goes back to una_psn to send again from there. Returns the wire bytes given up.
  static std::uint64_t rewind(EngineCore& core, QueuePair& qp);
  // The oldest READ or atomic that an acknowledgement up to `end` skips; nullptr: none.
  static SendEntry* unanswered_before(QueuePair& qp, Psn end);

 private:
  static Span span_of(EngineCore& core, const QueuePair& qp, const SendEntry& entry,
                      std::uint32_t from, std::uint32_t to);
  static Span span_between(EngineCore& core, const QueuePair& qp, std::uint32_t position, Psn from,
                           Psn to);
};

}  // namespace paceline::transport
