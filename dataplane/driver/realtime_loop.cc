#include "dataplane/driver/realtime_loop.h"

#include <thread>

namespace paceline {

RealtimeStats realtime_loop(transport::Engine& engine, const Port& port, const TscClock& clock,
                            const std::atomic<bool>& stop, RealtimeApp& app,
                            const RealtimeOptions& options) {
  RealtimeStats stats;
  Picos now{0};
  std::uint32_t idle = 0;
  while (!stop.load(std::memory_order_acquire)) {
    ++stats.turns;
    now = later(now, clock.now());  // the thread may have moved to a core whose counter lags
    const bool asked = app.step(now);
    if (asked || port.rx_ready_at() <= now || engine.next_deadline() <= now) {
      engine.poll(now);
      ++stats.polls;
      idle = 0;
      continue;
    }
    if (options.idle_turns_before_yield != 0 && ++idle >= options.idle_turns_before_yield) {
      idle = 0;
      ++stats.yields;
      std::this_thread::yield();
    }
  }
  stats.stopped_at = now;
  return stats;
}

}  // namespace paceline
