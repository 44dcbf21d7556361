// The lock of a completion queue or a work queue: one compare-and-swap if no other thread holds it,
// which is nearly always so; otherwise a short spin, then a sleep in the kernel.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace paceline::verbs {

class QueueLock {
 public:
  void lock() noexcept {
    std::uint32_t state = kFree;
    if (state_.compare_exchange_strong(state, kHeld, std::memory_order_acquire)) return;
    wait();
  }
  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kWaitedFor) {
      ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kWaitedFor = 2;
  static constexpr int kSpins = 100;  // some microseconds: longer than any holder needs

  void wait() noexcept {
    for (int i = 0; i < kSpins; ++i) {
      __builtin_ia32_pause();
      std::uint32_t state = kFree;
      if (state_.compare_exchange_weak(state, kHeld, std::memory_order_acquire)) return;
    }
    while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kFree) {
      ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kWaitedFor, nullptr, nullptr, 0);
    }
  }

  std::atomic<std::uint32_t> state_{kFree};
};

}  // namespace paceline::verbs
