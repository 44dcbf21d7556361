// The pacer of an engine: when each congestion context may send its next packet. Keys are context
// indices; service is by exact picosecond, then by index, so that two runs depart alike.
//
// The structure is DeadlineTree, which serves the retransmission timeouts as well. A wheel of time
// slots would have to sort within its slots to give exact order and an exact next deadline. One
// departure (find, take, schedule again), by GCC 12 and on a shared 2-core virtual machine: 12 ns
// with one context, 20 ns with 32, 35 ns with 1000, 80 ns with 100,000; std::priority_queue, which
// can neither move nor remove an entry: 5, 20, 33, 115 ns. Re-arming a timer: 11, 13, 14, 18 ns
// against 15, 31, 50, 120 ns (tests/bench/bench_pacing.cc; a four-ary heap with a position table
// took 31 ns with 32 contexts and 148 ns with 100,000).
#pragma once

#include "dataplane/base/containers/deadline_tree.h"

namespace paceline::pacing {

using DeadlineQueue = DeadlineTree;

}  // namespace paceline::pacing
