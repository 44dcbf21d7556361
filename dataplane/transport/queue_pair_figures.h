// Figures of a queue pair that follow from its state: what telemetry shows, and what one congestion
// control hands to the next.
#pragma once

#include <cstdint>

#include "dataplane/transport/queue_pair.h"

namespace paceline::transport {

// Of its connection, as far as it was measured; 0: not yet.
struct RoundTrip {
  std::uint32_t smoothed_ns = 0;
  std::uint32_t least_ns = 0;
};

inline RoundTrip round_trip_of(const QueuePair& qp) {
  if (qp.requester.selective) return {qp.selective->send.srtt_ns, qp.selective->send.min_rtt_ns};
  return {qp.requester.srtt_ns, qp.requester.min_rtt_ns};
}

// Payload that went out for messages that are still in the send queue, each byte once. Of UC and
// UD none: it is counted as it goes.
std::uint64_t sent_of_queued(const QueuePair& qp);

}  // namespace paceline::transport
