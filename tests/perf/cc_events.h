// Congestion control without an engine: one context under a realistic sequence of events, through
// the same cc::dispatch that the engine uses. What instructions.py divides by is the number of
// events delivered; the code that makes the events up is part of the measured cost (a few dozen
// instructions).
#pragma once

#include <array>
#include <cstdint>

#include "cc/interface/algorithm.h"
#include "cc/interface/event.h"

namespace paceline::perf {

struct EventCounts {
  std::array<std::uint64_t, cc::kSignals> by_signal{};
  std::uint64_t requests = 0;  // cadence: REQUESTs filled
  std::uint64_t rate_sum = 0;  // Mb/s over all decisions: the result depends on every event
  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : by_signal) sum += n;
    return sum;
  }
};

// A context of profile "paper" in an incast: CNPs 50 to 150 us apart in spells of congestion, none
// between them; every timer and byte-counter expiry the algorithm asks for.
// `which` is dcqcn, built in or as a plug-in.
EventCounts drive_dcqcn(std::uint64_t events, const cc::AlgorithmInfo& which);

// A channel that sends messages of 20 kB to 4 MB one after the other: start bytes, REQUESTs, grants
// that change now and then, uplink shares, the end of the backlog.
EventCounts drive_cadence(std::uint64_t events);

}  // namespace paceline::perf
