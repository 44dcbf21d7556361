// How many messages a rank can have in flight to and from each of its peers, by channel.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/workload/schedules/schedule.h"

namespace paceline::rank {

struct PeerTraffic {
  std::uint32_t peer = 0;
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  std::uint64_t channel = 0;
  std::uint8_t service_level = 0;  // 0: the device's own
};

// Peers without messages are left out.
std::vector<PeerTraffic> peer_traffic(const workload::Schedule& schedule, std::uint32_t rank,
                                      std::uint32_t window);

}  // namespace paceline::rank
