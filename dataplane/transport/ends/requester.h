// The requester: turns posted work into packets, and acknowledgements into completions. Under
// go-back-N (InfiniBand vol. 1, 9.7.2 and 9.7.5), a sequence NAK or a timeout rewinds to the oldest
// unacknowledged packet, and each PSN is rebuilt exactly as it was. Selective repeat is in
// SelectiveSender; the requester's state is RequesterState.
#pragma once

#include <cstdint>

#include "dataplane/port/packet.h"
#include "dataplane/transport/core/engine_core.h"
#include "dataplane/transport/read/read_requester.h"
#include "dataplane/wire/extensions/xack.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class Requester {
 public:
  explicit Requester(EngineCore& core) : core_(core) {}

  PostResult post(QueuePair& qp, const WorkRequest& posted);
  // Makes `packet` the one at next_psn: complete with headers and payload, and accounted in the
  // queue pair. False when the payload is not at hand: the requester then has no work, or the queue
  // pair has failed. Called by the scheduler.
  bool build_next(QueuePair& qp, Packet& packet);
  // There is a packet that may go out now.
  static bool has_work(const QueuePair& qp, Picos now) {
    const RequesterState& r = qp.requester;
    const bool fresh = r.position.request() != r.queue.tail() && r.stops == 0;
    return (fresh || (r.repair && (r.stops & requester_stop::memory) == 0)) &&
           now >= r.blocked_until;
  }
  // The wire bytes of that packet.
  static std::uint32_t next_wire_bytes(const EngineCore& core, const QueuePair& qp);

  // Responses. `parsed` is an ACK or NAK whose destination is `qp`.
  void on_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed);
  // The same for a READ response or an atomic acknowledgement. Takes the packet: frees it, or parks
  // it until memory answers.
  void on_response(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet);
  // Answers are being held back. This one must be held, too, or it would be taken out of order.
  bool holds_answers(const QueuePair& qp) const { return !qp.requester.parked.empty(); }
  // If too many packets wait already, this one is lost, as on a link.
  void hold(QueuePair& qp, Packet* packet);
  // An XACK for `qp`. True: it shows a gap to a requester under go-back-N. Then call on_gap() once
  // the actions of this call are performed: the algorithm hears of the acknowledgement first.
  bool on_xack(QueuePair& qp, const wire::ParsedPacket& parsed, const wire::Xack& xack);
  void on_gap(QueuePair& qp, const wire::ParsedPacket& parsed);
  // The queue pair's timer fired (retransmission or RNR back-off).
  void on_timer(QueuePair& qp);
  void memory_ready(QueuePair& qp);
  // Frees the parked packets.
  void discard(QueuePair& qp);

 private:
  bool wants_ack(QueuePair& qp) const;
  PostResult keep_source(QueuePair& qp, const WorkRequest& posted, QueuedRequest& kept);
  PostResult post_kept(QueuePair& qp, const QueuedRequest& request);
  bool take_as_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed, const wire::Xack& xack);
  // Takes in a response, under either kind of repair. A response that is not taken is counted by
  // its reason (telemetry::for_each_undelivered).
  ResponseOutcome take_in(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);

  EngineCore& core_;
};

}  // namespace paceline::transport
