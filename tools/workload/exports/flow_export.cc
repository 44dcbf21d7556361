#include "tools/workload/exports/flow_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace paceline::workload {

config::Read<std::string> write_flow_plan(const MessagePlan& plan, const NodeNumbers& numbers,
                                          const PlanDrops& drops) {
  config::Read<std::string> out;
  if (!drops.computing) out.errors = check_computing(plan, "a flow list");
  const PlanOrder order(plan);
  if (!drops.waits && order.waits() != 0) {
    out.errors.push_back(
        fmt::format("{} waits of messages for others: a flow list has starts only; "
                    "--drop-waits leaves them out",
                    order.waits()));
  }
  std::vector<HpccFlow> flows;
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const PlannedMessage& m = plan.messages[id];
    if (m.computes) continue;
    if (m.bytes == 0 && out.ok()) {
      out.errors.push_back(
          fmt::format("{}: 0 bytes: a flow has at least 1", message_text(plan, id)));
    }
    flows.push_back({.src = m.src,
                     .dst = m.dst,
                     .priority_group = m.traffic_class,
                     .bytes = m.bytes,
                     .start = std::max(m.start, order.awaited_start(id))});
  }
  if (!out.ok()) return out;
  std::stable_sort(flows.begin(), flows.end(),
                   [](const HpccFlow& a, const HpccFlow& b) { return a.start < b.start; });
  out.value = write_hpcc_flows(flows, numbers);
  return out;
}

}  // namespace paceline::workload
