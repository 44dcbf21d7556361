#include "dataplane/driver/loop/worker_watch.h"

namespace paceline {

Picos WorkerWatch::turn(Picos now, Picos asked) {
  const Picos before{last_turn_at_.load(std::memory_order_relaxed)};
  last_turn_at_.store(now.count, std::memory_order_relaxed);
  if (!turned_) {
    turned_ = true;
    return Picos{0};
  }
  const Picos gap = now - before;
  if (gap <= settings_.hiccup) [[likely]]
    return Picos{0};
  // A requested sleep is not a gap; waking up late from it is.
  if (gap - asked > settings_.hiccup) note(now, gap - asked);
  return gap;
}

void WorkerWatch::note(Picos now, Picos lost) {
  raise(hiccups_, 1);
  raise(hiccup_picos_, static_cast<std::uint64_t>(lost.count));
  last_hiccup_at_.store(now.count, std::memory_order_relaxed);
  if (lost.count > longest_.load(std::memory_order_relaxed)) {
    longest_.store(lost.count, std::memory_order_relaxed);
  }
  if (lost <= settings_.stall_limit) return;
  raise(stalls_, 1);
  last_stall_at_.store(now.count, std::memory_order_relaxed);
}

WatchCounters WorkerWatch::counters() const {
  WatchCounters c;
  c.hiccups = hiccups_.load(std::memory_order_relaxed);
  c.hiccup_time = Picos{static_cast<std::int64_t>(hiccup_picos_.load(std::memory_order_relaxed))};
  c.stalls = stalls_.load(std::memory_order_relaxed);
  c.longest = Picos{longest_.load(std::memory_order_relaxed)};
  c.last_hiccup_at = Picos{last_hiccup_at_.load(std::memory_order_relaxed)};
  c.last_stall_at = Picos{last_stall_at_.load(std::memory_order_relaxed)};
  c.last_turn_at = Picos{last_turn_at_.load(std::memory_order_relaxed)};
  return c;
}

}  // namespace paceline
