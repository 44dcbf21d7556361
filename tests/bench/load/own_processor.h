// The polling thread on a processor of its own.
#pragma once

#include <sched.h>

namespace paceline::bench {

// Puts the calling thread on `cpu` (below 0: leaves it where it is), with `fifo` above 0 under
// real-time scheduling of that priority: on a machine with other work that is the nearest thing to
// a quiet one, for a second or so.
inline void settle(int cpu, int fifo) {
  if (fifo > 0) {
    sched_param param{};
    param.sched_priority = fifo;
    sched_setscheduler(0, SCHED_FIFO, &param);
  }
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace paceline::bench
