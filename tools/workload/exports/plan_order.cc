#include "tools/workload/exports/plan_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace paceline::workload {

PlanOrder::PlanOrder(const MessagePlan& plan)
    : plan_(plan), first_(plan.messages.size() + 1), awaited_start_(plan.messages.size()) {
  const auto count = static_cast<std::uint32_t>(plan.messages.size());
  for (std::uint32_t id = 0; id < count; ++id) {
    if (plan.messages[id].after != kNoMessage) ++first_[id + 1];
  }
  for (const Join& join : plan.joins) ++first_[join.message + 1];
  for (std::uint32_t id = 0; id < count; ++id) first_[id + 1] += first_[id];
  waits_.resize(first_.back());
  std::vector<std::size_t> at(first_.begin(), first_.end() - 1);
  for (std::uint32_t id = 0; id < count; ++id) {
    if (plan.messages[id].after != kNoMessage) waits_[at[id]++] = plan.messages[id].after;
  }
  for (const Join& join : plan.joins) waits_[at[join.message]++] = join.after;
  sort();
}

void PlanOrder::sort() {
  const auto count = static_cast<std::uint32_t>(plan_.messages.size());
  std::vector<std::size_t> first(count + 1);
  for (const std::uint32_t after : waits_) ++first[after + 1];
  for (std::uint32_t id = 0; id < count; ++id) first[id + 1] += first[id];
  std::vector<std::uint32_t> followers(waits_.size());
  std::vector<std::uint32_t> left(count);
  std::vector<std::size_t> at(first.begin(), first.end() - 1);
  for (std::uint32_t id = 0; id < count; ++id) {
    for (const std::uint32_t after : waits_of(id)) followers[at[after]++] = id;
    left[id] = static_cast<std::uint32_t>(waits_of(id).size());
    if (left[id] == 0) order_.push_back(id);
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::uint32_t id = order_[i];
    const Picos begins = std::max(plan_.messages[id].start, awaited_start_[id]);
    for (std::size_t f = first[id]; f < first[id + 1]; ++f) {
      const std::uint32_t follower = followers[f];
      awaited_start_[follower] = std::max(awaited_start_[follower], begins);
      if (--left[follower] == 0) order_.push_back(follower);
    }
  }
  assert(order_.size() == count);
}

std::string message_text(const MessagePlan& plan, std::uint32_t message) {
  const PlannedMessage& m = plan.messages[message];
  return fmt::format("message {} ({}->{})", message, m.src, m.dst);
}

std::vector<std::string> check_computing(const MessagePlan& plan, const char* format) {
  std::uint64_t computing = 0;
  std::uint32_t first = 0;
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    if (plan.messages[id].gap.count == 0) continue;
    if (computing++ == 0) first = id;
  }
  if (computing == 0) return {};
  return {fmt::format(
      "times of computing and gaps: {}, the first of {}; {} has none: --drop-computing leaves them "
      "out",
      computing, message_text(plan, first), format)};
}

}  // namespace paceline::workload
