// A bounded queue between exactly one producer thread and one consumer thread, without locks. Each
// side owns a cache line with its index and its last sight of the other's index, so that a burst
// costs one shared cache line at most, and none while the cached view suffices.
//
// Everything written by the producer before push() returns is visible to the consumer after the
// pop() that returns the element (release on the index, acquire on its reading).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

namespace paceline {

// Two lines: the adjacent-line prefetcher of current x86 servers fetches lines in pairs.
inline constexpr std::size_t kInterferenceBytes = 128;

template <class T>
class SpscRing {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Holds at least `capacity` (>= 1) elements: the next power of two. The only allocation.
  explicit SpscRing(std::size_t capacity)
      : mask_(std::bit_ceil(capacity) - 1), slots_(std::make_unique<T[]>(mask_ + 1)) {
    assert(capacity >= 1);
  }
  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;

  std::size_t capacity() const { return mask_ + 1; }

  // Producer: appends the first n elements of the burst that fit, in order, and returns n.
  std::size_t push(std::span<const T> burst) {
    const std::size_t head = producer_.index.load(std::memory_order_relaxed);
    std::size_t room = capacity() - (head - producer_.peer);
    if (room < burst.size()) {
      producer_.peer = consumer_.index.load(std::memory_order_acquire);
      room = capacity() - (head - producer_.peer);
    }
    const std::size_t n = std::min(room, burst.size());
    const std::size_t first = std::min(n, capacity() - (head & mask_));
    std::copy_n(burst.data(), first, slots_.get() + (head & mask_));
    std::copy_n(burst.data() + first, n - first, slots_.get());
    if (n != 0) producer_.index.store(head + n, std::memory_order_release);
    return n;
  }
  bool push(const T& element) { return push(std::span<const T>(&element, 1)) == 1; }

  // Consumer: moves up to burst.size() of the oldest elements out, in order; returns how many.
  std::size_t pop(std::span<T> burst) {
    const std::size_t tail = consumer_.index.load(std::memory_order_relaxed);
    std::size_t filled = consumer_.peer - tail;
    if (filled < burst.size()) {
      consumer_.peer = producer_.index.load(std::memory_order_acquire);
      filled = consumer_.peer - tail;
    }
    const std::size_t n = std::min(filled, burst.size());
    const std::size_t first = std::min(n, capacity() - (tail & mask_));
    std::copy_n(slots_.get() + (tail & mask_), first, burst.data());
    std::copy_n(slots_.get(), n - first, burst.data() + first);
    if (n != 0) consumer_.index.store(tail + n, std::memory_order_release);
    return n;
  }
  bool pop(T& element) { return pop(std::span<T>(&element, 1)) == 1; }

  // Elements inside. Exact on a quiet ring; while the other side works, the consumer sees a lower
  // bound of what it can pop, the producer an upper bound of what still waits.
  std::size_t size() const {
    const std::size_t tail = consumer_.index.load(std::memory_order_acquire);
    return producer_.index.load(std::memory_order_acquire) - tail;
  }
  bool empty() const { return size() == 0; }

 private:
  // Indices run freely and wrap with the word; only their difference and low bits count.
  struct alignas(kInterferenceBytes) Side {
    std::atomic<std::size_t> index{0};
    std::size_t peer = 0;  // last seen index of the other side
  };
  static_assert(sizeof(Side) == kInterferenceBytes);

  const std::size_t mask_;
  const std::unique_ptr<T[]> slots_;
  Side producer_;
  Side consumer_;
};

}  // namespace paceline
