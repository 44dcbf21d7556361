// Which request may begin: how many READs and atomics are outstanding, fences, SQD, and end-to-end
// flow control (InfiniBand vol. 1, 9.7.7.2).
//
// An acknowledgement tells how many messages have been completed (MSN), and for how many more there
// are receive requests (credits). A request that takes a receive request is sent freely up to that
// limit. Of the first one beyond it, a single packet is sent, which asks for an acknowledgement and
// so for the current credits. That answer comes when the packet has taken a receive request: the
// first packet of a SEND, but the last of a WRITE with immediate, which therefore goes as a whole.
// READs, atomics and WRITEs without immediate need no credit.
//
// There is no limit until the peer has named one. The specification would have the first message
// probe, which costs a round trip with every peer that has no limit to tell.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class RequestOrder {
 public:
  // The peer has just turned out to answer by XACK: selective repeat begins as soon as nothing is
  // in flight.
  static void turn_selective(EngineCore& core, QueuePair& qp);
  // SQD: no further request begins; undrain(): requests begin again.
  static void drain(EngineCore& core, QueuePair& qp, bool notify);
  static void undrain(EngineCore& core, QueuePair& qp);
  // How many messages the request lies beyond the peer's receive requests; zero or less: it may go.
  static std::int32_t beyond_credits(const RequesterState& r, const SendEntry& entry) {
    return r.credit_limited ? sends_beyond_credits(r, entry) : 0;
  }
  // An ACK has told the peer's credits.
  static void on_credits(EngineCore& core, QueuePair& qp, wire::Aeth aeth) {
    if (aeth.value() != wire::kCreditUnlimited || qp.requester.credit_limited) {
      update_credits(core, qp, aeth);
    }
  }
  // Sets or clears requester_stop::order for the request at the cursor.
  static void check(QueuePair& qp);
  // Checks whether every request that was begun is complete: SQD and turn_selective() wait for
  // that.
  static void check_drained(EngineCore& core, QueuePair& qp);

 private:
  static std::int32_t sends_beyond_credits(const RequesterState& r, const SendEntry& entry);
  static void update_credits(EngineCore& core, QueuePair& qp, wire::Aeth aeth);
};

}  // namespace paceline::transport
