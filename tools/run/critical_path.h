// The chain of messages and times of computing that determines when a job ends: each began when the
// one before it had arrived or ended.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/driver/virtual/virtual_world.h"

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

// Back from message `last`, which has ended.
CriticalPath critical_path(const VirtualWorld& world, std::uint32_t last);

}  // namespace paceline::tools
