#include "dataplane/driver/loop/worker_watch.h"

#include <fmt/format.h>

namespace paceline {

namespace {

double millis(Picos t) { return static_cast<double>(t.count) * 1e-9; }

}  // namespace

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
  // A sleep that was asked for is nobody's fault; waking up late from it is.
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

std::string stall_line(const std::string& worker, const WatchSettings& settings,
                       const WatchCounters& before, const WatchCounters& after, Picos now) {
  if (after.stalls != before.stalls) {
    return fmt::format(
        "worker {}: {} stalls of more than {:.3g} ms (longest so far {:.3g} ms); its processor was "
        "taken away, or an application's step took that long",
        worker, after.stalls - before.stalls, millis(settings.stall_limit), millis(after.longest));
  }
  const Picos silent = now - after.last_turn_at;
  if (after.last_turn_at.count == 0 || silent <= settings.stall_limit) return "";
  return fmt::format("worker {}: has not turned for {:.3g} ms", worker, millis(silent));
}

}  // namespace paceline
