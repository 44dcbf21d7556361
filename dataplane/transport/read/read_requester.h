// The requester's side of READ and atomic operations (InfiniBand vol. 1, 9.7.2.6, 9.7.5.1.1 and
// 9.7.5.1.3). One request packet is sent. Its responses carry as many sequence numbers as the
// request has taken, and each acknowledges everything before it. If responses are missing, they are
// asked for again from the first missing one on, with address, length and sequence number moved
// there.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

enum class ResponseOutcome : std::uint8_t { done, pending };
enum class ResponseTaken : std::uint8_t { yes, pending, failed };

class ReadRequester {
 public:
  // Whether a parked packet is a READ response or an atomic acknowledgement, rather than an ACK or
  // NAK.
  static bool is_response(const Packet& packet);
  // Builds the request packet for the entry at the cursor, for its responses from cursor_packet on.
  static void build(EngineCore& core, QueuePair& qp, Packet& packet, const SendEntry& entry);
  // Go-back-N: asks again from the oldest missing response on.
  static void answers_lost(EngineCore& core, QueuePair& qp);
  // Go-back-N: a response in order, or one that shows a gap.
  static ResponseOutcome accept(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed,
                                const Packet& packet);
  // Checks a response against its request and places it.
  static ResponseTaken take_response(EngineCore& core, QueuePair& qp, const SendEntry& entry,
                                     const wire::ParsedPacket& parsed, const Packet& packet);
  // Counts a response that was not taken, by the reason why.
  static void count_untaken(EngineCore& core, const QueuePair& qp, Psn psn, bool could_send);
  // Counts a parked packet that is thrown away; frees nothing.
  static void count_discarded(EngineCore& core, const Packet& packet);

 private:
  static MemoryResult place_response(EngineCore& core, QueuePair& qp, const SendEntry& entry,
                                     const wire::ParsedPacket& parsed, const Packet& packet);
};

}  // namespace paceline::transport
