// Figures that are derived from the state of a queue pair: telemetry shows them, and one congestion
// control passes them to the next.
#pragma once

#include <cstdint>

#include "dataplane/transport/qp/queue_pair.h"

namespace paceline::transport {

// The round trip of its connection, as far as it was measured; 0: not yet.
inline const RoundTripEstimate& round_trip_of(const QueuePair& qp) {
  return qp.requester.selective ? qp.selective->send.round_trip : qp.requester.round_trip;
}

// Payload sent for messages that are still in the send queue, each byte once. None for UC and UD:
// theirs is counted when it is sent.
std::uint64_t sent_of_queued(const QueuePair& qp);

}  // namespace paceline::transport
