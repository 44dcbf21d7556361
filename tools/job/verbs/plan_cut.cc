#include "tools/job/verbs/plan_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace paceline::tools {

namespace {

using rank::PlanPart;
using rank::PlanSend;

static_assert(kNoMessage == rank::kPooledLane);

// Bytes of a message's memory: ranges begin at whole words.
std::uint64_t room_of(const PlannedMessage& m) { return (m.bytes + 7) / 8 * 8; }

std::vector<std::string> message_errors(const MessagePlan& plan) {
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const PlannedMessage& m = plan.messages[id];
    if (m.computes) continue;
    if (m.src == m.dst) {
      return {fmt::format("message {}: NIC {} sends to itself: over verbs expected is another NIC",
                          id, m.src)};
    }
    if (m.bytes > rank::kMostPlanMessageBytes) {
      return {
          fmt::format("message {}, NIC {} to NIC {}: {} bytes: over verbs a message has at "
                      "most {}; a smaller workload.job.chunk_bytes cuts collectives",
                      id, m.src, m.dst, m.bytes, rank::kMostPlanMessageBytes)};
    }
  }
  return {};
}

PlanSend send_of(const MessagePlan& plan, const PlannedMessage& m, std::uint32_t id) {
  PlanSend s;
  s.id = id;
  s.to = m.dst;
  s.bytes = m.bytes;
  s.start = m.start;
  s.gap = m.computes ? computing_time(plan, m, m.start) : m.gap;
  s.lane = m.lane;
  // Level 0 is the testbed's own class, the default one; class 0 can have only that.
  s.service_level = m.traffic_class == kDefaultDataClass ? std::uint8_t{0} : m.traffic_class;
  s.computes = m.computes;
  if (m.after != kNoMessage) s.after.push_back(m.after);
  return s;
}

// Gives the message its place in the receiver's memory.
std::uint64_t place_at(const PlannedMessage& m, PlanPart& receiver) {
  if (!receiver.data) {
    receiver.receive_bytes = std::max(receiver.receive_bytes, room_of(m));
    return 0;
  }
  return std::exchange(receiver.receive_bytes, receiver.receive_bytes + room_of(m));
}

std::vector<std::string> memory_errors(const std::vector<PlanPart>& parts) {
  const auto most = std::max_element(
      parts.begin(), parts.end(),
      [](const PlanPart& a, const PlanPart& b) { return a.receive_bytes < b.receive_bytes; });
  if (most == parts.end() || most->receive_bytes <= kMostReceivedBytes) return {};
  return {
      fmt::format("NIC {} receives {} bytes: to compare them allowed are {} for each NIC; "
                  "--no-data lets messages share memory and compares lengths alone",
                  most - parts.begin(), most->receive_bytes, kMostReceivedBytes)};
}

std::vector<std::string> fault_errors(const MessagePlan& plan) {
  for (const SlowComputing& slow : plan.slow_computing) {
    if (slow.from.count <= 0 && slow.until == kNever) continue;
    return {
        fmt::format("fault \"slow_rank\", NIC {}: over verbs a rank is slow all the time: leave "
                    "out at and duration",
                    slow.host)};
  }
  return {};
}

}  // namespace

std::uint32_t plan_nics(const MessagePlan& plan) {
  std::uint32_t nics = 0;
  for (const PlannedMessage& m : plan.messages) nics = std::max({nics, m.src + 1, m.dst + 1});
  return nics;
}

config::Read<std::vector<PlanPart>> cut_plan(const MessagePlan& plan, bool data) {
  config::Read<std::vector<PlanPart>> out;
  out.errors = message_errors(plan);
  if (out.ok()) out.errors = fault_errors(plan);
  if (!out.ok()) return out;
  std::vector<PlanPart>& parts = out.value;
  parts.resize(plan_nics(plan));
  for (PlanPart& part : parts) part.data = data;
  std::vector<std::uint32_t> index(plan.messages.size());  // in the sender's part
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const PlannedMessage& m = plan.messages[id];
    index[id] = static_cast<std::uint32_t>(parts[m.src].sends.size());
    PlanSend s = send_of(plan, m, id);
    if (!m.computes) {
      s.at = place_at(m, parts[m.dst]);
      parts[m.dst].arrivals.push_back({id, m.src, m.bytes, m.lane, s.at});
    }
    parts[m.src].sends.push_back(std::move(s));
  }
  for (const Join& join : plan.joins) {
    parts[plan.messages[join.message].src].sends[index[join.message]].after.push_back(join.after);
  }
  out.errors = memory_errors(parts);
  return out;
}

}  // namespace paceline::tools
