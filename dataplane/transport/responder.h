// The responder: checks request packets against the expected sequence (InfiniBand vol. 1, 9.7.4 and
// 9.8), places their payload, and answers with ACK, NAK or RNR NAK. Also the notification point of
// congestion control: CE-marked data makes it send CNPs, at most one per interval and flow.
#pragma once

#include <cstdint>

#include "dataplane/port/packet.h"
#include "dataplane/transport/engine_core.h"
#include "dataplane/wire/parse.h"

namespace paceline::transport {

class RequesterPart;

class ResponderPart {
 public:
  ResponderPart(EngineCore& core, RequesterPart& requester) : core_(core), requester_(requester) {}

  // A SEND or WRITE packet for `qp`. Takes the packet: frees it, or parks it while memory answers.
  void on_request(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet);
  void memory_ready(QueuePair& qp);
  // Frees what is parked.
  void discard(QueuePair& qp);

 private:
  enum class Outcome : std::uint8_t { done, pending };

  Outcome accept(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  bool begin_message(QueuePair& qp, const wire::ParsedPacket& parsed);
  MemoryResult place(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  void finish_message(QueuePair& qp, const wire::ParsedPacket& parsed);
  void acknowledge(QueuePair& qp, Psn psn, wire::Aeth aeth, bool becn);
  void put_off(QueuePair& qp);
  void fail_receive(QueuePair& qp, CompletionStatus status);
  void refuse(QueuePair& qp, wire::NakCode code);
  void park(QueuePair& qp, Packet* packet);
  void notify_congestion(QueuePair& qp);

  EngineCore& core_;
  RequesterPart& requester_;
};

}  // namespace paceline::transport
