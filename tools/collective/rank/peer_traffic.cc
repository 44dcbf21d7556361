#include "tools/collective/rank/peer_traffic.h"

namespace paceline::rank {

std::vector<PeerTraffic> peer_traffic(const workload::Schedule& schedule, std::uint32_t rank,
                                      std::uint32_t window) {
  std::vector<PeerTraffic> of_rank(schedule.ranks);
  for (const workload::Transfer& t : schedule.transfers) {
    if (t.from == t.to) continue;
    if (t.from == rank) of_rank[t.to].sent += window;
    if (t.to == rank) of_rank[t.from].received += window;
  }
  std::vector<PeerTraffic> out;
  for (std::uint32_t peer = 0; peer < schedule.ranks; ++peer) {
    PeerTraffic t = of_rank[peer];
    if (t.sent == 0 && t.received == 0) continue;
    t.peer = peer;
    // Includes the messages to the senders that a part may be sent.
    const bool sends = t.sent > 0;
    if (t.received > 0) t.sent += window;
    if (sends) t.received += window;
    out.push_back(t);
  }
  return out;
}

}  // namespace paceline::rank
