// The responder: checks request packets against the expected sequence (InfiniBand vol. 1, 9.7.4 and
// 9.8), has their payload placed (MessagePlacer) and answered (Answers).
#pragma once

#include "dataplane/port/packet.h"
#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/message/answers.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class Responder {
 public:
  explicit Responder(EngineCore& core) : core_(core) {}

  // A request packet for `qp`. Takes the packet: frees it, or parks it until memory answers.
  void on_request(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet);
  // Only the headers of a request packet for `qp` have come.
  void on_trimmed(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  void memory_ready(QueuePair& qp);
  // Frees the parked packets.
  void discard(QueuePair& qp);

 private:
  [[gnu::always_inline]] RequestOutcome take(QueuePair& qp, const wire::ParsedPacket& parsed,
                                             const Packet& packet) {
    if (qp.requests == wire::Service::rc) [[likely]]
      return accept(qp, parsed, packet);
    return take_otherwise(qp, parsed, packet);
  }
  [[gnu::noinline]] RequestOutcome take_otherwise(QueuePair& qp, const wire::ParsedPacket& parsed,
                                                  const Packet& packet);
  RequestOutcome accept(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  RequestOutcome accept_question(QueuePair& qp, const wire::ParsedPacket& parsed);
  void park(QueuePair& qp, Packet* packet);
  void wait_for_memory(QueuePair& qp, Packet* packet);
  bool take_selective(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet);
  void deliver_held(QueuePair& qp);

  EngineCore& core_;
};

}  // namespace paceline::transport
