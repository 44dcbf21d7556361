// Round trips: the one that is being timed, and the measured values.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/base/protocol/psn.h"
#include "dataplane/base/units.h"

namespace paceline::transport {

// One packet at a time is timed, under go-back-N; never a packet that was sent before (Karn).
class RoundTripProbe {
 public:
  bool active() const { return active_; }
  Picos sent_at() const { return sent_at_; }
  void start(Psn psn, Picos now) {
    active_ = true;
    psn_ = psn;
    sent_at_ = now;
  }
  void stop() { active_ = false; }
  // Everything before `next` is acknowledged. True: this includes the packet, and the probe is
  // over.
  bool answered(Psn next) {
    if (!active_ || !before(psn_, next)) return false;
    active_ = false;
    return true;
  }

 private:
  Picos sent_at_{0};
  Psn psn_;
  bool active_ = false;
};

class RoundTripEstimate {
 public:
  std::uint32_t smoothed_ns() const { return smoothed_ns_; }  // 0: nothing was measured yet
  std::uint32_t least_ns() const { return least_ns_; }        // likewise
  void add(std::uint32_t rtt_ns) {
    least_ns_ = least_ns_ == 0 ? rtt_ns : std::min(least_ns_, rtt_ns);
    smoothed_ns_ = smoothed_ns_ == 0 ? rtt_ns : smoothed_ns_ - smoothed_ns_ / 8 + rtt_ns / 8;
  }

 private:
  std::uint32_t smoothed_ns_ = 0;
  std::uint32_t least_ns_ = 0;
};

}  // namespace paceline::transport
