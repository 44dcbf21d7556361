// Keeps DPDK's interrupt thread away from a device while it is polled.
//
// Some drivers tear a device down on that thread while other threads poll it: net_memif (22.11)
// unmaps the rings as soon as the peer's socket closes, and a receiver in the middle of a burst
// then reads unmapped memory. No driver callback comes before that, so the thread itself is held: a
// callback registered here blocks it, and releases it for a moment every millisecond, when no
// thread is inside a burst.
//
// A driver's work on interrupts and alarms (connections, link changes) is late by up to
// kHoldMillis per step; a connection of net_memif takes about ten. A burst costs two atomic stores
// and a load more. One gate serves all devices of the process: there is one such thread.
#pragma once

#include <atomic>
#include <cstddef>

namespace paceline {

class InterruptGate {
 public:
  static constexpr int kHoldMillis = 1;

  // Null where the system refuses: the device is then to be polled without. Never destroyed: it is
  // the interrupt thread's, which runs for as long as the process.
  static InterruptGate* make();
  // Holds the thread for good; returns when it is held. At the end, DPDK unmaps its memory without
  // telling that thread, and net_memif leaves a listener of its server role behind in that memory.
  virtual void close_for_good() = 0;
  virtual ~InterruptGate() = default;
  InterruptGate(const InterruptGate&) = delete;
  InterruptGate& operator=(const InterruptGate&) = delete;

  // One per polling thread and device; its own cache line.
  struct alignas(64) Visitor {
    std::atomic<bool> inside{false};
  };
  // Before any burst, and after the last one. At most kMostVisitors at a time.
  static constexpr std::size_t kMostVisitors = 64;
  virtual bool add(Visitor& visitor) = 0;
  virtual void remove(Visitor& visitor) = 0;

  // False: not now; treat the burst as empty. True: call leave() afterwards. Neither call waits.
  bool enter(Visitor& visitor) const {
    visitor.inside.store(true, std::memory_order_seq_cst);
    if (!away_.load(std::memory_order_seq_cst)) return true;
    visitor.inside.store(false, std::memory_order_release);
    return false;
  }
  static void leave(Visitor& visitor) { visitor.inside.store(false, std::memory_order_release); }

 protected:
  InterruptGate() = default;
  // The interrupt thread runs, or waits to run.
  std::atomic<bool> away_{true};
};

}  // namespace paceline
