// The pacer of an engine: when each congestion context may send its next packet. Keys are context
// indices; service is by exact picosecond, then by index, so that two runs depart alike.
//
// The structure is DeadlineTree, which serves the retransmission timeouts as well. It keeps the
// name of its place in the design; a wheel of time slots was not built, because exact order and an
// exact next deadline would make it sort within its slots, and the tree costs less than a binary
// heap from 32 contexts to 100,000 (tests/bench/bench_pacing.cc).
#pragma once

#include "dataplane/base/deadline_tree.h"

namespace paceline::pacing {

using PacingWheel = DeadlineTree;

}  // namespace paceline::pacing
