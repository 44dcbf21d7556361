// Whether there are too few processors for spinning: two programs that wait for one another, with
// the worker between them, need three. Counts the processors that the calling thread may run on.
#pragma once

#include <sched.h>

namespace paceline::attach {

inline bool few_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) <= 3;
}

}  // namespace paceline::attach
