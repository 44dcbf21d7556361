// Which request may begin: how many READs and atomics are outstanding, fences, SQD, and end-to-end
// flow control (InfiniBand vol. 1, 9.7.7.2).
//
// An acknowledgement says how many messages have been completed (MSN) and for how many more there
// are receive requests (credits). A request that takes one is sent freely up to that limit. Of the
// first one beyond it a single packet is sent, which asks for an acknowledgement and so for news of
// credits. That news comes when the packet has taken a receive request: the first of a SEND, the
// last of a WRITE with immediate, which therefore goes as a whole. READs, atomics and WRITEs
// without immediate need none.
//
// Until the peer has named a limit, none is kept to: the specification would have the first message
// probe, which costs a round trip against every peer that has no limit to tell.
#pragma once

#include <cstdint>

#include "dataplane/transport/core/engine_core.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::transport {

class RequestOrder {
 public:
  // The peer has just turned out to answer by XACK: selective repeat begins as soon as nothing is
  // under way.
  static void turn_selective(EngineCore& core, QueuePair& qp);
  // SQD: begins no request more; undrain: does again.
  static void drain(EngineCore& core, QueuePair& qp, bool notify);
  static void undrain(EngineCore& core, QueuePair& qp);
  // How many messages the request is beyond what the peer has receive requests for; not
  // positive: it may go.
  static std::int32_t beyond_credits(const RequesterState& r, const SendEntry& entry) {
    return r.credit_limited ? sends_beyond_credits(r, entry) : 0;
  }
  // An ACK has brought news of credits.
  static void on_credits(EngineCore& core, QueuePair& qp, wire::Aeth aeth) {
    if (aeth.value() != wire::kCreditUnlimited || qp.requester.credit_limited) {
      update_credits(core, qp, aeth);
    }
  }
  // Sets or clears requester_stop::order by the request at the cursor.
  static void check(QueuePair& qp);
  // Whether everything that was begun is complete, for whom SQD and turn_selective() wait.
  static void check_drained(EngineCore& core, QueuePair& qp);

 private:
  static std::int32_t sends_beyond_credits(const RequesterState& r, const SendEntry& entry);
  static void update_credits(EngineCore& core, QueuePair& qp, wire::Aeth aeth);
};

}  // namespace paceline::transport
