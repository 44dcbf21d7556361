// What the responder sends: ACK, NAK, RNR NAK, XACK and atomic acknowledgements, and how they are
// sent. Answers are given in the order of their sequence numbers (InfiniBand vol. 1, 9.7.5.1). An
// acknowledgement waits until all earlier READ responses have been sent; one that follows while it
// waits replaces it (coalescing, 9.7.5.1.2: the later one also acknowledges everything that the
// earlier one did).
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

// held: the packet was kept for its turn.
enum class RequestOutcome : std::uint8_t { done, pending, held };

class Answers {
 public:
  // Nobody will answer for this queue pair any more. Sends a NAK for the packet that the peer sends
  // now or next (Requester::on_acknowledge).
  static void send_disconnect_nak(EngineCore& core, QueuePair& qp) {
    send_acknowledge(
        core, qp, qp.responder.position.expected(),
        wire::Aeth::nak(qp.responder.position.msn(), wire::NakCode::remote_operational_error),
        false);
  }
  // Gives the XACK that the current packet asks for, if any.
  static void give_xack(EngineCore& core, QueuePair& qp);
  // Sends an XACK that tells what has arrived beyond `expected`.
  static void send_xack(EngineCore& core, QueuePair& qp, Psn expected, wire::Aeth aeth);
  // Gives back bytes of READ responses that will not be sent after all.
  static void take_back(EngineCore& core, QueuePair& qp, std::uint64_t bytes);
  // Gives answers that waited behind READ responses and may go now.
  static void give_due(EngineCore& core, QueuePair& qp);
  // Drops ranges asked for again of READs whose state is gone.
  static void drop_stale_repairs(EngineCore& core, QueuePair& qp);
  // Settles whether the scheduler may ask for a READ response.
  static void update_response_ready(EngineCore& core, QueuePair& qp);
  // Sends an ACK or NAK of `psn`, behind the READ responses that are due.
  static void acknowledge(EngineCore& core, QueuePair& qp, Psn psn, wire::Aeth aeth, bool becn);
  // The same, but at once.
  static void send_acknowledge(EngineCore& core, QueuePair& qp, Psn psn, wire::Aeth aeth,
                               bool becn);
  // An ACK with the credits that there are. A shared queue promises nothing to anybody.
  static wire::Aeth ack_of(const QueuePair& qp, std::uint32_t msn);
  // Whether a response of its own answered the newest request.
  static bool answered_itself(const QueuePair& qp);
  // Sends a NAK, once per gap: the current packet came, but the expected one did not.
  static void tell_gap(EngineCore& core, QueuePair& qp, bool becn);
  // Sends an RNR NAK: there is no receive request.
  static void not_ready(EngineCore& core, QueuePair& qp);
  // Sends a NAK that ends the connection.
  static void refuse(EngineCore& core, QueuePair& qp, wire::NakCode code);
  // The same for the current packet.
  static RequestOutcome refuse_packet(EngineCore& core, QueuePair& qp, wire::NakCode code);

 private:
  static void send_atomic_acknowledge(EngineCore& core, QueuePair& qp,
                                      const ResponderResource& resource);
  static void send_answer(EngineCore& core, QueuePair& qp, Packet* packet);
  // Out of line, so that what acknowledges every packet stays small.
  [[gnu::noinline]] static void send_otherwise(EngineCore& core, QueuePair& qp, Packet* packet);
};

}  // namespace paceline::transport
