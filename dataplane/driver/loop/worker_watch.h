// Watches for gaps between a worker's turns. During a gap the worker receives and answers nothing;
// usually the host has given its processor to another thread. There are two thresholds. A hiccup is
// reported to the engines, so that it does not look like congestion (transport::Engine::stopped). A
// stall needs an operator's attention.
//
// One thread writes, once per turn; any thread reads.
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline {

struct WatchSettings {
  // Both are times between the starts of two turns; hiccup <= stall_limit.
  Picos hiccup = picos_from_micros(100);
  Picos stall_limit = picos_from_micros(10'000);
};

struct WatchCounters {
  std::uint64_t hiccups = 0;  // including stalls
  Picos hiccup_time{0};       // their sum
  std::uint64_t stalls = 0;
  Picos longest{0};
  Picos last_hiccup_at{0};  // when the latest one ended
  Picos last_stall_at{0};
  Picos last_turn_at{0};
};

class WorkerWatch {
 public:
  // Does not check the settings: readers of configuration do.
  explicit WorkerWatch(const WatchSettings& settings = {}) : settings_(settings) {}

  // A turn begins. `asked`: how long the worker has asked to sleep since the turn before; that part
  // of the gap is not counted. Returns the whole gap, sleep included, if it is longer than
  // WatchSettings::hiccup; else 0.
  Picos turn(Picos now, Picos asked = Picos{0});

  // Any thread. Each value is correct by itself; they may be from different turns.
  WatchCounters counters() const;
  const WatchSettings& settings() const { return settings_; }

 private:
  // Only the worker's thread writes: no read-modify-write is needed.
  static void raise(std::atomic<std::uint64_t>& counter, std::uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  void note(Picos now, Picos lost);

  WatchSettings settings_;
  bool turned_ = false;
  std::atomic<std::uint64_t> hiccups_{0};
  std::atomic<std::uint64_t> hiccup_picos_{0};
  std::atomic<std::uint64_t> stalls_{0};
  std::atomic<std::int64_t> longest_{0};
  std::atomic<std::int64_t> last_hiccup_at_{0};
  std::atomic<std::int64_t> last_stall_at_{0};
  std::atomic<std::int64_t> last_turn_at_{0};
};

}  // namespace paceline
