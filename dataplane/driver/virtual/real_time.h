// A world under a clock that does not wait for it: options, and how well time was kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/numbers/histogram.h"
#include "dataplane/base/units.h"
#include "dataplane/driver/clock/wall_clock.h"

namespace paceline {

// Effect of a stop of the host on the time of the world. `run_on` is a plain clock, and the only
// choice with devices, whose time continues. `hold` removes the stop from the world's time: the
// whole emulated world stops together, so that nothing in it can notice.
enum class OnStop : std::uint8_t { run_on, hold };

struct RealTimeOptions {
  WallClock* clock = nullptr;  // nullptr: virtual time. Must outlive the run.
  // A gap in which the loop did not run, longer than this: the host has stopped us.
  Picos stop_threshold = picos_from_micros(100);
  OnStop on_stop = OnStop::run_on;
  // A host that is polled this long after it had something to do is late. 0: a fiftieth of the
  // longest unloaded round trip, 2 us at least.
  Picos tolerance{0};
  // The transmit ring of every emulated NIC, in time on the wire: a packet is taken while the wire
  // is busy for no longer than this, and follows then without a gap. A host that is a microsecond
  // late for every packet could not fill its link without.
  // Negative: two full packets.
  Picos transmit_ahead{-1};
};

// A span of the world's time in which the host stopped this process. For a held stop, both ends are
// the time at which the world's clock stood.
struct HostStop {
  Picos begin{0};
  Picos end{0};
};

struct RealTimeReport {
  // Nanoseconds between the time at which a host of the fabric had something to do (a packet
  // arrived, a timer or its pacer was due) and the poll in which it did it.
  Histogram lateness_ns;
  std::vector<HostStop> stops;  // of the host, in order; the first kMostStops
  std::uint64_t stop_count = 0;
  Picos stopped{0};  // by the wall clock, all stops together
  Picos longest_stop{0};
  Picos late{0};     // time in which an actor was overdue for longer than the tolerance
  Picos elapsed{0};  // by the wall clock
  Picos waited{0};   // of that time, without anything to do
  std::uint64_t turns = 0;
  Picos stop_threshold{0};
  Picos tolerance{0};
  OnStop on_stop = OnStop::run_on;

  static constexpr std::size_t kMostStops = 100'000;

  double late_share() const;
  // Whether the results are those of the scenario rather than of this machine: late for no more
  // than 2 % of the time, stops that were held not counted.
  bool credible() const { return late_share() <= kMostLate; }
  static constexpr double kMostLate = 0.02;

  // Whether a stop touches [begin, end).
  bool stopped_within(Picos begin, Picos end) const;
};

}  // namespace paceline
