// The chain of messages and times of computing that determines when a job ends: each began when the
// one before it had arrived or ended.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/driver/traffic/message_app.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/driver/traffic/sender_limits.h"

namespace paceline::tools {

struct PathStep {
  std::uint32_t message = 0;  // of the plan
  Picos begin{0};
  Picos end{0};
};

struct CriticalPath {
  std::vector<PathStep> steps;  // in the order of time, without joins
  // Sums, which with the time before the first step are the job's time.
  Picos computing{0};
  Picos network{0};
  Picos nvlink{0};
};

// How the messages of a plan went.
struct PlanTimes {
  const MessagePlan* plan = nullptr;
  const std::vector<MessageRecord>* records = nullptr;
  // By message, its last dependency, or kNoMessage; nullptr: derived from the records, whose times
  // are then exact.
  const std::vector<std::uint32_t>* causes = nullptr;
  bool ideals = false;  // MessagePlan::collectives have their ideal times
  // By MessagePlan::collectives; empty: not known.
  std::vector<SenderLimits::Times> limits{};
};

// Back from message `last`, which has ended.
CriticalPath critical_path(const PlanTimes& times, std::uint32_t last);

}  // namespace paceline::tools
