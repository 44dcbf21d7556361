// Whether there is hardly a processor to spare for spinning: two programs that wait for one another
// and the worker between them want three. What the calling thread may run on counts.
#pragma once

#include <sched.h>

namespace paceline::attach {

inline bool few_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) <= 3;
}

}  // namespace paceline::attach
