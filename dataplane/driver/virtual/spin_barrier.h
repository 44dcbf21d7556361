// A barrier for a fixed number of threads that meet every few microseconds. A thread spins first,
// which is enough if each has its own processor, and then yields, in case processors are shared.
//
// Writes of a thread before wait() are visible to every thread after its own wait().
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace paceline {

class SpinBarrier {
 public:
  explicit SpinBarrier(std::uint32_t threads) : threads_(threads) {}
  SpinBarrier(const SpinBarrier&) = delete;
  SpinBarrier& operator=(const SpinBarrier&) = delete;

  void wait() {
    const std::uint32_t round = round_.load(std::memory_order_relaxed);
    if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      waiting_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (std::uint32_t spins = 0; round_.load(std::memory_order_acquire) == round;) {
      if (++spins < kSpins) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      } else {
        std::this_thread::yield();
      }
    }
  }

 private:
  static constexpr std::uint32_t kSpins = 500;  // some 20 us

  const std::uint32_t threads_;
  alignas(128) std::atomic<std::uint32_t> waiting_{0};
  alignas(128) std::atomic<std::uint32_t> round_{0};
};

}  // namespace paceline
