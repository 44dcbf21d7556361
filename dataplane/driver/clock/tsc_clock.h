// The clock of a real-time engine: the processor's time stamp counter, calibrated once against
// CLOCK_MONOTONIC_RAW, as picoseconds since the clock was made. A reading costs about 10 ns and no
// system call. (DPDK's own estimate of the frequency is off by up to 0.15 %, which a pacer at line
// rate would turn into 0.15 % of the rate.)
//
// The counter is used only where the processor says that it runs at a constant rate in all power
// states (CPUID 0x80000007, EDX bit 8: "invariant TSC"); elsewhere, and on other architectures, the
// clock is clock_gettime(CLOCK_MONOTONIC_RAW). Copies agree with each other, on all threads of a
// machine whose counters are synchronised, as Linux checks before it uses the TSC itself.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"
#include "dataplane/port/poll_clock.h"

namespace paceline {

class TscClock {
 public:
  enum class Source : std::uint8_t { tsc, system };

  // Measures the frequency over `span`, during which the caller sleeps; the error is about
  // 50 ns / span. Falls back to the system clock where there is no invariant TSC, or when
  // `allow_tsc` is false.
  static TscClock calibrated(Nanos span = {20'000'000}, bool allow_tsc = true);

  // Since calibration. Never negative; on one thread never less than the reading before.
  Picos now() const;

  // For ports; this must outlive their use of it, and stay where it is.
  PollClock poll_clock() const {
    return {[](const void* of) { return static_cast<const TscClock*>(of)->now(); }, this};
  }

  Source source() const { return source_; }
  // Ticks per second as measured; 10^9 for the system clock.
  double frequency() const;

 private:
  TscClock() = default;

  Source source_ = Source::system;
  std::uint64_t origin_ = 0;          // ticks at time 0
  std::uint64_t picos_per_tick_ = 0;  // times 2^32
};

// The system's own raw monotonic time: what the calibration measures against.
Nanos raw_monotonic_time();

}  // namespace paceline
