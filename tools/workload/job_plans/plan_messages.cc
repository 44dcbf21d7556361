#include "tools/workload/job_plans/plan_messages.h"

namespace paceline::workload {

PlannedMessage compute_message(std::uint32_t rank, Picos duration, std::uint32_t call) {
  PlannedMessage m;
  m.src = m.dst = rank;
  m.gap = duration;
  m.computes = true;
  m.collective = call;
  return m;
}

std::uint32_t add_message(MessagePlan& plan, const PlannedMessage& message) {
  plan.messages.push_back(message);
  return static_cast<std::uint32_t>(plan.messages.size() - 1);
}

std::uint32_t add_join(MessagePlan& plan, std::uint32_t rank, std::uint32_t call) {
  return add_message(plan, compute_message(rank, Picos{0}, call));
}

void add_wait(MessagePlan& plan, std::uint32_t message, std::uint32_t after) {
  PlannedMessage& m = plan.messages[message];
  if (m.after == kNoMessage) {
    m.after = after;
  } else {
    plan.joins.push_back({message, after});
  }
}

}  // namespace paceline::workload
