#include "dataplane/driver/traffic/message_plan.h"

#include <stdexcept>

namespace paceline {

namespace {

void mark(MessagePlan& plan, const PlannedMessage& waiting, std::uint32_t id) {
  PlannedMessage& awaited = plan.messages.at(id);
  if (awaited.src == waiting.src) {
    awaited.notify_sender = true;
  } else if (awaited.dst == waiting.src) {
    awaited.notify = true;
  } else {
    throw std::invalid_argument("a message of host " + std::to_string(waiting.src) +
                                " waits for one from host " + std::to_string(awaited.src) +
                                " to host " + std::to_string(awaited.dst));
  }
}

}  // namespace

void mark_awaited(MessagePlan& plan) {
  for (const PlannedMessage& message : plan.messages) {
    if (message.after != kNoMessage) mark(plan, message, message.after);
  }
  for (const Join& join : plan.joins) mark(plan, plan.messages.at(join.message), join.after);
}

Picos computing_time(const MessagePlan& plan, const PlannedMessage& computing, Picos now) {
  double factor = 1;
  for (const SlowComputing& slow : plan.slow_computing) {
    if (slow.host == computing.src && slow.from <= now && now < slow.until) factor *= slow.factor;
  }
  if (factor == 1) return computing.gap;
  return Picos{static_cast<std::int64_t>(static_cast<double>(computing.gap.count) * factor)};
}

}  // namespace paceline
