// The clock of a world in real time: reads the time, and lets time pass. Tests use their own.
#pragma once

#include "dataplane/base/units.h"
#include "dataplane/driver/clock/tsc_clock.h"

namespace paceline {

class WallClock {
 public:
  WallClock() = default;
  WallClock(const WallClock&) = delete;
  WallClock& operator=(const WallClock&) = delete;
  virtual ~WallClock() = default;

  // Since some origin; never less than the reading before.
  virtual Picos now() = 0;
  // Returns when now() is `until` or more: as soon after it as can be had. At once when it is over.
  virtual void wait(Picos until) = 0;
};

// The TSC clock. For near times it waits awake, because a processor that sleeps comes back tens of
// microseconds late; for others it sleeps until shortly before.
class TscWallClock final : public WallClock {
 public:
  explicit TscWallClock(TscClock clock = TscClock::calibrated()) : clock_(clock) {}

  Picos now() override;
  void wait(Picos until) override;

 private:
  TscClock clock_;
  Picos last_{0};
};

}  // namespace paceline
