#include "dataplane/driver/realtime_loop.h"

#include <thread>

namespace paceline {

namespace {

// True when there was something to do.
bool turn(const RealtimeTask& task, Picos now, RealtimeStats& stats) {
  transport::Engine& engine = *task.engine;
  const bool due = task.app->step(now) || engine.next_deadline() <= now;
  if (!due && task.port->rx_ready_at() > now) return false;
  const std::uint64_t received = engine.counters().rx_packets;
  engine.poll(now);
  ++stats.polls;
  return due || engine.counters().rx_packets != received;
}

}  // namespace

RealtimeStats realtime_loop(std::span<const RealtimeTask> tasks, const TscClock& clock,
                            const std::atomic<bool>& stop, const RealtimeOptions& options) {
  RealtimeStats stats;
  Picos now{0};
  std::uint32_t idle = 0;
  while (!stop.load(std::memory_order_acquire)) {
    ++stats.turns;
    now = later(now, clock.now());  // the thread may have moved to a core whose counter lags
    bool busy = false;
    for (const RealtimeTask& task : tasks) busy |= turn(task, now, stats);
    if (busy) {
      idle = 0;
    } else if (options.idle_turns_before_yield != 0 && ++idle >= options.idle_turns_before_yield) {
      idle = 0;
      ++stats.yields;
      std::this_thread::yield();
    }
  }
  stats.stopped_at = now;
  return stats;
}

RealtimeStats realtime_loop(transport::Engine& engine, const Port& port, const TscClock& clock,
                            const std::atomic<bool>& stop, RealtimeApp& app,
                            const RealtimeOptions& options) {
  const RealtimeTask task{&engine, &port, &app};
  return realtime_loop({&task, 1}, clock, stop, options);
}

}  // namespace paceline
