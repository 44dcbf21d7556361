// The requester under selective repeat. The content of an XACK is entered packet by packet
// (Scoreboard). Lost packets, and only those, are sent again, oldest first. After two round trips
// without an answer, the oldest packet is sent again as a probe (after the tail loss probe of RFC
// 8985).
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/read/read_requester.h"
#include "dataplane/wire/extensions/xack.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class SelectiveSender {
 public:
  // Enters what the XACK says; `expected` is the peer's next sequence number.
  static void on_xack(EngineCore& core, QueuePair& qp, Psn expected, const wire::Xack& xack);
  // An ACK or NAK of a peer that may speak XACK.
  static void on_acknowledge(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed);
  // The wire bytes of the next packet to be sent again.
  static std::uint32_t next_wire_bytes(const EngineCore& core, const QueuePair& qp);
  // Makes `packet` the oldest lost packet, or a request for missing answers. False as in
  // Requester::build_next.
  static bool build_repair(EngineCore& core, QueuePair& qp, Packet& packet);
  // Something that selective repeat waited for is due.
  static void on_timer(EngineCore& core, QueuePair& qp);
  // A READ response or an atomic acknowledgement, in any order.
  static ResponseOutcome accept_response(EngineCore& core, QueuePair& qp,
                                         const wire::ParsedPacket& parsed, const Packet& packet);

 private:
  static bool advance(EngineCore& core, QueuePair& qp);
  static void refused(EngineCore& core, QueuePair& qp, Psn expected, wire::Aeth aeth);
  static void on_rnr_nak(EngineCore& core, QueuePair& qp, Psn expected, wire::Aeth aeth);
  static void probe_tail(EngineCore& core, QueuePair& qp);
};

}  // namespace paceline::transport
