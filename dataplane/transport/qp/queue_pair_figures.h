// Figures of a queue pair that follow from its state: what telemetry shows, and what one congestion
// control hands to the next.
#pragma once

#include <cstdint>

#include "dataplane/transport/qp/queue_pair.h"

namespace paceline::transport {

// The round trip of its connection, as far as it was measured; 0: not yet.
inline const RoundTripEstimate& round_trip_of(const QueuePair& qp) {
  return qp.requester.selective ? qp.selective->send.round_trip : qp.requester.round_trip;
}

// Payload that went out for messages that are still in the send queue, each byte once. Of UC and
// UD none: it is counted as it goes.
std::uint64_t sent_of_queued(const QueuePair& qp);

}  // namespace paceline::transport
