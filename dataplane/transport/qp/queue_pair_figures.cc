#include "dataplane/transport/qp/queue_pair_figures.h"

#include <algorithm>

namespace paceline::transport {

std::uint64_t sent_of_queued(const QueuePair& qp) {
  if (qp.unreliable) return 0;
  const RequesterState& r = qp.requester;
  std::uint64_t bytes = 0;
  for (std::uint32_t p = r.queue.head(); p != r.queue.tail(); ++p) {
    const SendEntry& entry = r.queue.at(p);
    const std::int32_t packets = distance(r.position.end(), entry.first_psn);
    if (packets <= 0) break;
    if (entry.has_response) continue;
    bytes += std::min(entry.request.length, static_cast<std::uint64_t>(packets) * qp.mtu);
  }
  return bytes;
}

}  // namespace paceline::transport
