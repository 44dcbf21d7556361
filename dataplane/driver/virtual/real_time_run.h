// Runs a world in real time, on the calling thread: the same part, hosts, links and switches as
// virtual time, with `now` read from a clock.
//
// Time means two things here. What happens in the fabric (a packet arrives at a switch, a queue
// sends the next packet, a link fails) is physics: it happens at its own time, even if it is
// processed late. A wire that was free at t sent at t. What a host does (an engine polls, an
// application posts) happens when it is really done, as on a machine: the engine gets the clock's
// reading, and what it sends starts no earlier. Before a host is polled at `now`, everything in the
// fabric up to `now` has happened, so that the host sees what a real host would see.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "dataplane/driver/virtual/real_time.h"
#include "dataplane/driver/virtual/world_part.h"

namespace paceline {

class RealTimeRun {
 public:
  enum class End : std::uint8_t { completed, duration, stalled, hop_limit, stopped };

  struct Options {
    RealTimeOptions real_time;  // with the clock; tolerance not 0
    Picos duration = kNever;
    std::uint64_t messages = 0;  // the run ends when this many are finished
    std::uint64_t max_hops = 0;
    const std::atomic<bool>* stop = nullptr;
    Picos sample_interval = kNever;
    std::function<void(Picos)> sample;            // at multiples of the interval
    std::function<void(std::uint64_t)> progress;  // with the bytes done, now and then
  };

  // The part has begun; it must outlive the run.
  RealTimeRun(WorldPart& part, Options options);

  End run();

  const RealTimeReport& report() const { return report_; }
  // The world's time: that of the last turn, or the duration once it is over.
  Picos now() const { return now_; }

 private:
  Picos read_clock();
  void poll_hosts();
  void account_lateness(Picos due);

  WorldPart& part_;
  Options options_;
  RealTimeReport report_;
  Picos origin_{0};  // the clock's reading at the world's time 0
  Picos held_{0};    // taken out of time at stops
  Picos now_{0};     // of the world
  Picos wanted_{0};  // world's time at which the next reading is due: now_, or the end of a wait
  Picos late_until_{0};  // report_.late counts everything before
};

}  // namespace paceline
