#include "tools/run/rail_traffic.h"

namespace paceline::tools {

RailTraffic rail_traffic(const MessagePlan& plan, const std::vector<MessageRecord>& records,
                         const config::ServerShape& shape) {
  RailTraffic traffic;
  for (std::size_t id = 0; id < plan.messages.size(); ++id) {
    const PlannedMessage& m = plan.messages[id];
    if (records[id].completed.count < 0 || records[id].failed || m.computes) continue;
    (m.nvlink ? traffic.nvlink_bytes : traffic.nic_bytes) += m.bytes;
    if (shape.rail_of(m.src) != shape.rail_of(m.dst) && !m.nvlink) {
      traffic.cross_rail_bytes += m.bytes;
    }
  }
  return traffic;
}

}  // namespace paceline::tools
