// Shared by algorithms with in-band telemetry: the links of the path in the last records, and the
// changes on each link since.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/interface/event.h"
#include "dataplane/base/protocol/int_stack.h"

namespace paceline::cc {

// One link between two records of it.
struct LinkSpan {
  double ns = 0;            // between them; positive
  double rate = 0;          // of the link, bytes per ns; positive
  double sent = 0;          // bytes that left by it
  double queue_before = 0;  // bytes
  double queue = 0;         // bytes
};

// Counts are in units of this many bytes, because the wire format has fewer bits.
struct IntUnits {
  std::uint32_t sent = 1;   // positive
  std::uint32_t queue = 1;  // positive
};

class IntLinks {
 public:
  // Takes the records that came back with an event, and calls visit(LinkSpan) for each link of the
  // path. False, without any call, if there is nothing to compare with: no records came; they are
  // the first; they went another way; they are older than the ones before; or those are so old that
  // counters may have wrapped.
  template <class Visit>
  bool take(const Event& e, const IntUnits& units, Visit&& visit) {
    if (e.int_stack == nullptr || e.int_stack->hops == 0) return false;
    const IntStack& stack = *e.int_stack;
    const bool known = last_.hops == stack.hops && last_.path == stack.path && fresh(e.now, stack);
    if (known) {
      for (std::uint32_t i = 0; i < stack.hops; ++i) {
        const std::uint32_t ns = elapsed(i, stack);
        if (ns == 0 || ns > kIntTimeWrap / 2) return false;  // overtaken on the way
      }
      for (std::uint32_t i = 0; i < stack.hops; ++i) visit(span(i, stack, units));
    }
    last_ = stack;
    taken_at_ = e.now;
    return known;
  }

 private:
  std::uint32_t elapsed(std::uint32_t i, const IntStack& stack) const {
    return (stack.hop[i].time_ns - last_.hop[i].time_ns) & (kIntTimeWrap - 1);
  }

  static std::uint32_t whole(std::uint32_t count, std::uint32_t unit) {
    return unit == 1 ? count : count - count % unit;
  }

  LinkSpan span(std::uint32_t i, const IntStack& stack, const IntUnits& units) const {
    const IntHop& hop = stack.hop[i];
    const IntHop& before = last_.hop[i];
    LinkSpan s;
    s.ns = elapsed(i, stack);
    s.rate = hop.rate_mbps / 8000.0;
    // Not below 0 where the counter wraps within a unit: the bytes cut off then are at most those
    // counted.
    s.sent = (whole(hop.sent_bytes, units.sent) - whole(before.sent_bytes, units.sent)) &
             (kIntSentWrap - 1);
    s.queue_before = whole(before.queue_bytes, units.queue);
    s.queue = whole(hop.queue_bytes, units.queue);
    return s;
  }

  // Counters have not wrapped since: in half a wrap of the clock, and as many bytes as the fastest
  // link may have sent in that time. A margin of a half, for the way back may have taken longer.
  bool fresh(Nanos now, const IntStack& stack) const {
    std::uint32_t fastest = 1;
    for (std::uint32_t i = 0; i < stack.hops; ++i) {
      if (stack.hop[i].rate_mbps == 0) return false;
      fastest = std::max(fastest, stack.hop[i].rate_mbps);
    }
    const double wraps_ns = std::min(double{kIntTimeWrap}, double{kIntSentWrap} * 8000 / fastest);
    return static_cast<double>(now.count - taken_at_.count) < wraps_ns / 2;
  }

  IntStack last_;
  Nanos taken_at_{};
};

}  // namespace paceline::cc
