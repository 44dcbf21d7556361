// Which way the bytes of a workload take in a fabric whose servers have several NICs.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/config/server_shape.h"
#include "dataplane/driver/traffic/message_app.h"
#include "dataplane/driver/traffic/message_plan.h"

namespace paceline::tools {

// Payload of the messages that completed.
struct RailTraffic {
  std::uint64_t nvlink_bytes = 0;
  std::uint64_t nic_bytes = 0;
  std::uint64_t cross_rail_bytes = 0;  // of nic_bytes: to a NIC of another rail

  double cross_rail_share() const {
    return nic_bytes == 0 ? 0
                          : static_cast<double>(cross_rail_bytes) / static_cast<double>(nic_bytes);
  }
};

RailTraffic rail_traffic(const MessagePlan& plan, const std::vector<MessageRecord>& records,
                         const config::ServerShape& shape);

}  // namespace paceline::tools
